// The wire's bytes, read as they were written and read as a stranger may write them.

#include "runtime/transport/zmq_packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "runtime/base/random.h"
#include "runtime/transport/zmq_admission.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

constexpr std::size_t kChunk = kLeastChunkBytes;
constexpr PacketLimits kLimits{kChunk, 3, SIZE_MAX};

struct CutMessage {
  int stripe;
  std::vector<Buffer> frames;
};

std::vector<CutMessage> cut_up(PacketCutter& cutter, const Packet& packet) {
  std::vector<CutMessage> messages;
  cutter.cut(packet, nullptr, [&](int stripe, std::span<const Buffer> frames) {
    messages.push_back({stripe, {frames.begin(), frames.end()}});
  });
  return messages;
}

RecycledMemory& memory() {
  static RecycledMemory shared;
  return shared;
}

std::string take(PacketAssembler& assembler, std::vector<Buffer> frames) {
  return assembler.take(frames, nullptr);
}

TEST(Packets, ComeOutInOrderHoweverTheirStripesAreMixed) {
  const std::vector<std::vector<std::size_t>> sizes = {
      {4 * kChunk + 1}, {5}, {200'000}, {2 * kChunk, 3 * kChunk}, {}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    PacketCutter cutter(kLimits);
    std::vector<std::deque<CutMessage>> stripes(3);
    for (std::uint64_t i = 0; i < sizes.size(); ++i) {
      for (CutMessage& message : cut_up(cutter, packet_of(i, sizes[i]))) {
        stripes[static_cast<std::size_t>(message.stripe)].push_back(std::move(message));
      }
    }
    PacketAssembler assembler(kLimits, memory());
    std::uint64_t next = 0;
    for (std::uint64_t step = 0; next < sizes.size(); ++step) {
      auto& stripe = stripes[mix64(seed * 1000 + step) % 3];
      if (stripe.empty()) continue;
      ASSERT_EQ(take(assembler, std::move(stripe.front().frames)), "");
      stripe.pop_front();
      while (const auto packet = assembler.next()) {
        ASSERT_TRUE(is_packet(*packet, next, sizes[next]));
        ++next;
      }
    }
  }
}

TEST(Packets, LargePayloadsUseEveryStripe) {
  PacketCutter cutter(kLimits);
  std::vector<int> used(3);
  for (const CutMessage& message : cut_up(cutter, packet_of(1, {9 * kChunk}))) {
    ++used[static_cast<std::size_t>(message.stripe)];
  }
  EXPECT_EQ(used, (std::vector<int>{4, 3, 3}));
}

// An assembler that was told of one payload of so many bytes, in chunks.
PacketAssembler waiting_for(std::uint64_t bytes) {
  PacketAssembler assembler(kLimits, memory());
  const PayloadEntry entry{bytes, PayloadEntry::How::kChunks, {}};
  EXPECT_EQ(take(assembler, {write_packet(0, {&entry, 1}, {})}), "");
  return assembler;
}

// Whatever a packet has, no message of it brings more than a lane has agreed on.
TEST(Packets, MessagesOfABoundedLaneAreSmallAndComeOutWhole) {
  constexpr PacketLimits kBounded{1000, 1, SIZE_MAX, 1000};
  const std::vector<std::vector<std::size_t>> sizes = {
      {}, {0, 1000, 0}, {400, 600, 1}, {1001, 999, 0, 5}, std::vector<std::size_t>(1024, 300)};
  PacketCutter cutter(kBounded);
  PacketAssembler assembler(kBounded, memory());
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    std::vector<CutMessage> messages = cut_up(cutter, packet_of(i, sizes[i]));
    for (CutMessage& message : messages) {
      std::size_t bytes = 0;
      for (std::size_t k = 1; k < message.frames.size(); ++k) bytes += message.frames[k].size();
      EXPECT_LE(bytes, 1000U);
      EXPECT_FALSE(assembler.next()) << "nothing is whole before its last message";
      ASSERT_EQ(take(assembler, std::move(message.frames)), "");
    }
    const auto packet = assembler.next();
    ASSERT_TRUE(packet);
    EXPECT_TRUE(is_packet(*packet, i, sizes[i]));
  }
  const PayloadEntry nothing{0, PayloadEntry::How::kChunks, {}};
  EXPECT_EQ(take(assembler, {write_packet(sizes.size(), {&nothing, 1}, {})}),
            "a small payload in chunks");
}

TEST(Packets, ChunksThatDoNotFitAreRefused) {
  const auto told = [](const ChunkFrame& place, std::size_t bytes) {
    PacketAssembler assembler = waiting_for(2 * kChunk + 1);
    return take(assembler, {write_chunk(place), pattern(bytes, 1)});
  };
  EXPECT_EQ(told({0, 0, 0}, kChunk), "");
  EXPECT_EQ(told({0, 0, 2}, 1), "");
  EXPECT_EQ(told({0, 0, 0}, kChunk - 1), "a chunk of another size");
  EXPECT_EQ(told({0, 0, 2}, 2), "a chunk of another size");
  EXPECT_EQ(told({0, 0, 3}, 1), "a chunk beyond its payload");
  EXPECT_EQ(told({0, 0, UINT32_MAX}, 1), "a chunk beyond its payload");
  EXPECT_EQ(told({0, 1, 0}, kChunk), "a chunk of no payload");
  EXPECT_EQ(told({0, 0, 0}, 0), "a damaged chunk");
}

TEST(Packets, AChunkTwiceIsRefused) {
  for (const std::uint32_t chunk : {0, 1}) {
    PacketAssembler assembler = waiting_for(2 * kChunk);
    EXPECT_EQ(take(assembler, {write_chunk({0, 0, chunk}), pattern(kChunk, 1)}), "");
    EXPECT_EQ(take(assembler, {write_chunk({0, 0, chunk}), pattern(kChunk, 1)}),
              "a chunk that came before");
  }
}

TEST(Packets, APacketTwiceIsRefused) {
  PacketAssembler assembler(kLimits, memory());
  EXPECT_EQ(take(assembler, {write_packet(0, {}, {})}), "");
  EXPECT_EQ(take(assembler, {write_packet(0, {}, {})}), "a packet that came before");
  EXPECT_TRUE(assembler.next());
  EXPECT_EQ(take(assembler, {write_packet(0, {}, {})}), "a packet that came before");
  EXPECT_EQ(take(assembler, {write_chunk({0, 0, 0}), pattern(1, 1)}),
            "a chunk of a packet that is whole");
}

TEST(Packets, PayloadsThatAreNotAsAnnouncedAreRefused) {
  const auto told = [](PayloadEntry entry, std::vector<Buffer> payloads) {
    PacketAssembler assembler(kLimits, memory());
    payloads.insert(payloads.begin(), write_packet(0, {&entry, 1}, {}));
    return take(assembler, std::move(payloads));
  };
  using How = PayloadEntry::How;
  EXPECT_EQ(told({3, How::kFrame, {}}, {pattern(3, 1)}), "");
  EXPECT_NE(told({3, How::kFrame, {}}, {pattern(4, 1)}), "");
  EXPECT_NE(told({3, How::kFrame, {}}, {}), "");
  EXPECT_NE(told({3, How::kFrame, {}}, {pattern(3, 1), pattern(3, 1)}), "");
  EXPECT_NE(told({3, How::kShared, {}}, {}), "");
  EXPECT_NE(told({kChunk, How::kChunks, {}}, {}), "");
}

TEST(Packets, AnnouncedSizesCostNothingUntilTheyArrive) {
  PacketAssembler assembler(kLimits, memory());
  const std::vector<PayloadEntry> entries(Packet::kMostPayloads,
                                          {kMostPayloadBytes, PayloadEntry::How::kChunks, {}});
  EXPECT_EQ(take(assembler, {write_packet(0, entries, {})}), "");
  // 16 TiB are announced; the last chunk of each alone takes no memory of the whole.
  const auto last = static_cast<std::uint32_t>(kMostPayloadBytes / kChunk - 1);
  EXPECT_EQ(take(assembler, {write_chunk({0, 5, last}), pattern(kChunk, 1)}), "");
  EXPECT_EQ(take(assembler, {write_chunk({0, 5, 7}), pattern(kChunk, 1)}), "");
  EXPECT_FALSE(assembler.next());
}

// What an assembler over so many stripes says to a message that comes before its turn.
std::string told_early(int stripes, std::vector<Buffer> frames) {
  PacketAssembler assembler({kChunk, stripes, SIZE_MAX}, memory());
  return take(assembler, std::move(frames));
}

TEST(Packets, OverOneStripeNothingComesBeforeItsTurn) {
  EXPECT_EQ(told_early(1, {write_packet(0, {}, {})}), "");
  EXPECT_EQ(told_early(1, {write_packet(1, {}, {})}), "a packet far before its turn");
  EXPECT_EQ(told_early(1, {write_chunk({1, 0, 0}), pattern(kChunk, 1)}),
            "a chunk far before its turn");
  EXPECT_EQ(told_early(1, {write_chunk({0, 0, 0}), pattern(kChunk, 1)}),
            "a chunk before its packet");
}

TEST(Packets, NoNumberIsFurtherAheadThanCreditsAllow) {
  constexpr std::uint64_t kMost = PacketAssembler::kMostAhead;
  EXPECT_EQ(told_early(2, {write_packet(kMost, {}, {})}), "");
  EXPECT_EQ(told_early(2, {write_packet(kMost + 1, {}, {})}), "a packet far before its turn");
  EXPECT_EQ(told_early(2, {write_packet(UINT64_MAX, {}, {})}), "a packet far before its turn");
  EXPECT_EQ(told_early(2, {write_chunk({kMost, 0, 0}), pattern(kChunk, 1)}), "");
  EXPECT_EQ(told_early(2, {write_chunk({kMost + 1, 0, 0}), pattern(kChunk, 1)}),
            "a chunk far before its turn");
}

TEST(Packets, AnEarlyChunkIsFullOrATail) {
  EXPECT_EQ(told_early(2, {write_chunk({3, 0, 0}), pattern(kChunk, 1)}), "");
  EXPECT_EQ(told_early(2, {write_chunk({3, 0, 1}), pattern(1, 1)}), "");
  const std::string wrong = "a chunk that fits no payload";
  EXPECT_EQ(told_early(2, {write_chunk({3, 0, 0}), pattern(kChunk - 1, 1)}), wrong);
  EXPECT_EQ(told_early(2, {write_chunk({3, 0, 0}), pattern(kChunk + 1, 1)}), wrong);
  EXPECT_EQ(told_early(2, {write_chunk({3, 0, kMostPayloadBytes / kChunk}), pattern(kChunk, 1)}),
            wrong);
  PacketAssembler assembler({kChunk, 2, SIZE_MAX}, memory());
  EXPECT_EQ(take(assembler, {write_chunk({3, 0, 1}), pattern(1, 1)}), "");
  EXPECT_EQ(take(assembler, {write_chunk({3, 1, 1}), pattern(1, 1)}), "");
  EXPECT_EQ(take(assembler, {write_chunk({3, 0, 2}), pattern(1, 1)}), "a second tail");
}

// Sends messages, one after the other, until one is refused; at most `most`.
std::size_t taken_of(std::size_t most,
                     const std::function<std::vector<Buffer>(std::size_t)>& make) {
  PacketAssembler assembler({kChunk, 2, SIZE_MAX}, memory());
  for (std::size_t i = 0; i < most; ++i) {
    if (!take(assembler, make(i)).empty()) return i;
  }
  return most;
}

TEST(Packets, ManySmallPartsDoNotWaitForOneThatNeverComes) {
  constexpr std::size_t kMost = 100'000;
  constexpr std::size_t kFree = PacketAssembler::kFreeBytes / PacketAssembler::kEntryBytes;
  const auto tiny_packets =
      taken_of(kMost, [](std::size_t i) { return std::vector{write_packet(i + 1, {}, {})}; });
  EXPECT_GT(tiny_packets, kFree);
  EXPECT_LT(tiny_packets, 2 * kFree);
  const auto tiny_tails = taken_of(kMost, [](std::size_t i) {
    return std::vector{write_chunk({i + 1, 0, 1}), pattern(1, i)};
  });
  EXPECT_GT(tiny_tails, kFree / 2);
  EXPECT_LT(tiny_tails, kFree);
  const auto announcements = taken_of(kMost, [](std::size_t i) {
    const std::vector<PayloadEntry> entries(100, {2 * kChunk, PayloadEntry::How::kChunks, {}});
    return std::vector{write_packet(i + 1, entries, {})};
  });
  EXPECT_LT(announcements, kFree / 50);
  // What a node sends brings more than it costs.
  const Buffer header = pattern(90, 1);
  EXPECT_EQ(
      taken_of(kMost,
               [&](std::size_t i) { return std::vector{write_packet(i + 1, {}, header.bytes())}; }),
      kMost);
}

TEST(Packets, WhatWasHandedOverWaitsNoMore) {
  PacketAssembler assembler({kChunk, 2, SIZE_MAX}, memory());
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    // In pairs: the second one first.
    ASSERT_EQ(take(assembler, {write_packet(i ^ 1, {}, {})}), "") << i;
    while (assembler.next()) {
    }
  }
}

// Changes some bytes, or the length.
Buffer damaged(const Buffer& frame, std::uint64_t seed) {
  const std::size_t bytes = seed % 4 == 0 ? mix64(seed) % (frame.size() + 9) : frame.size();
  Buffer copy = Buffer::zeroed(bytes);
  std::copy_n(frame.data(), std::min(bytes, frame.size()), copy.mutable_data());
  for (std::uint64_t i = 0; bytes > 0 && i < 1 + seed % 3; ++i) {
    const std::uint64_t draw = mix64(seed * 31 + i);
    copy.mutable_data()[draw % bytes] = static_cast<std::byte>(draw >> 32);
  }
  return copy;
}

TEST(Packets, DamagedFramesAreReadOrRefusedButDoNoHarm) {
  Attach attach;
  attach.strand.token = random_token();
  attach.chunk_bytes = kChunk;
  WireWelcome welcome;
  welcome.chunk_bytes = kChunk;
  const PayloadEntry entries[] = {{10, PayloadEntry::How::kFrame, {}},
                                  {3 * kChunk, PayloadEntry::How::kChunks, {}},
                                  {100, PayloadEntry::How::kShared, {}}};
  const std::vector<Buffer> whole = {
      write_attach(attach),  write_welcome(welcome),
      write_ready({true}),   write_bare(FrameKind::kOpen),
      write_refuse("no"),    write_packet(0, entries, pattern(30, 1).bytes()),
      write_chunk({0, 1, 1})};
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 70'000; ++seed) {
    const Buffer frame = damaged(whole[seed % whole.size()], seed);
    const bool read = read_attach(frame.bytes()) || read_welcome(frame.bytes()) ||
                      read_ready(frame.bytes()) || read_packet(frame) || read_chunk(frame.bytes());
    refused += read ? 0 : 1;
    EXPECT_LE(read_refuse(frame.bytes()).size(), frame.size());
    StrandName::from_route(frame.bytes());
    PacketAssembler assembler(kLimits, memory());
    take(assembler, {frame, pattern(10, seed)});
    assembler.next();
  }
  EXPECT_GT(refused, 10'000u);
  EXPECT_LT(refused, 69'000u);
}

Buffer text(std::string_view value) { return Buffer::copy_of(std::as_bytes(std::span(value))); }

TEST(Admission, OnlyKeysOfTheListAreLetIn) {
  const std::string key(64, '0');  // 32 zero bytes
  std::vector<Buffer> request = {text("1.0"),   text("77"),    text("troupe"),    text("::1"),
                                 text("route"), text("CURVE"), Buffer::zeroed(32)};
  const AdmissionAnswer answer = answer_admission(request, [&](const std::string& asked) {
    return asked == key ? Admission::kAdmitted : Admission::kRefused;
  });
  EXPECT_EQ(answer.admission, Admission::kAdmitted);
  EXPECT_EQ(answer.key, key);
  ASSERT_EQ(answer.frames.size(), 6u);
  EXPECT_TRUE(same_bytes(answer.frames[1], text("77")));
  EXPECT_TRUE(same_bytes(answer.frames[2], text("200")));
  EXPECT_TRUE(same_bytes(answer.frames[4], text(key)));
  const auto nobody = [](const std::string&) { return Admission::kRefused; };
  EXPECT_EQ(answer_admission(request, nobody).admission, Admission::kRefused);
}

TEST(Admission, RequestsThatCannotBeUnderstoodAreRefused) {
  const auto anybody = [](const std::string&) { return Admission::kAdmitted; };
  const std::vector<Buffer> whole = {text("1.0"),   text("77"),    text("troupe"),    text("::1"),
                                     text("route"), text("CURVE"), Buffer::zeroed(32)};
  for (std::size_t count = 0; count < whole.size(); ++count) {
    EXPECT_EQ(answer_admission(std::span(whole).first(count), anybody).admission,
              Admission::kRefused);
  }
  for (const std::size_t position : {0, 5, 6}) {
    std::vector<Buffer> request = whole;
    request[position] = text("else");
    EXPECT_EQ(answer_admission(request, anybody).admission, Admission::kRefused);
    request[position] = Buffer();
    EXPECT_EQ(answer_admission(request, anybody).admission, Admission::kRefused);
  }
}

}  // namespace
}  // namespace troupe::runtime
