// Packets cut into messages and put together again, as they were written and as an unknown peer may
// write them.

#include "runtime/transport/zmq_packets.h"

#include <gtest/gtest.h>

#include "runtime/transport/zmq_admission.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

using Messages = std::vector<std::vector<Buffer>>;

Messages cut_up(const Packet& packet, Lane lane) {
  Messages messages;
  cut(packet, lane, cuts_of(lane), nullptr, 0,
      [&](std::span<const Buffer> frames) { messages.emplace_back(frames.begin(), frames.end()); });
  return messages;
}

RecycledMemory& memory() {
  static RecycledMemory shared;
  return shared;
}

std::string take(PacketAssembler& assembler, std::vector<Buffer> frames) {
  return assembler.take(frames, nullptr);
}

Buffer chunk_mark() { return write_bare(FrameKind::kChunk, Lane::kData); }

// An assembler that was told of payloads of so many bytes, in chunks.
PacketAssembler waiting_for(const std::vector<std::uint64_t>& sizes) {
  PacketAssembler assembler(Lane::kData, memory());
  std::vector<PayloadEntry> entries;
  for (const std::uint64_t bytes : sizes) {
    entries.push_back({bytes, PayloadEntry::How::kChunks, {}});
  }
  EXPECT_EQ(take(assembler, {write_packet(Lane::kData, entries, {})}), "");
  return assembler;
}

TEST(Packets, ComeOutAsTheyWentIn) {
  const std::vector<std::vector<std::size_t>> sizes = {
      {4 * kChunkBytes + 1}, {5}, {200'000}, {2 * kChunkBytes, 3, 3 * kChunkBytes}, {}, {0, 7, 0}};
  PacketAssembler assembler(Lane::kData, memory());
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    for (auto& frames : cut_up(packet_of(i, sizes[i]), Lane::kData)) {
      EXPECT_FALSE(assembler.next()) << "nothing is whole before its last message";
      ASSERT_EQ(take(assembler, std::move(frames)), "");
    }
    const auto packet = assembler.next();
    ASSERT_TRUE(packet);
    EXPECT_TRUE(is_packet(*packet, i, sizes[i]));
  }
}

TEST(Packets, MessagesOfControlAreSmallAndComeOutWhole) {
  constexpr std::size_t kMost = kControlChunkBytes;
  const std::vector<std::vector<std::size_t>> sizes = {{0, kMost, 0},
                                                       {kMost / 2, kMost / 2, 1},
                                                       {kMost + 1, kMost - 1, 0, 5},
                                                       std::vector<std::size_t>(1024, 300)};
  PacketAssembler assembler(Lane::kControl, memory());
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    for (auto& frames : cut_up(packet_of(i, sizes[i]), Lane::kControl)) {
      std::size_t bytes = 0;
      for (std::size_t k = 1; k < frames.size(); ++k) bytes += frames[k].size();
      EXPECT_LE(bytes, kMost);
      ASSERT_EQ(take(assembler, std::move(frames)), "");
    }
    const auto packet = assembler.next();
    ASSERT_TRUE(packet);
    EXPECT_TRUE(is_packet(*packet, i, sizes[i]));
  }
}

TEST(Packets, ChunksThatDoNotFitAreRefused) {
  const auto told = [](std::size_t chunks_before, std::size_t bytes) {
    PacketAssembler assembler = waiting_for({2 * kChunkBytes + 1});
    for (std::size_t i = 0; i < chunks_before; ++i) {
      EXPECT_EQ(take(assembler, {chunk_mark(), pattern(kChunkBytes, 1)}), "");
    }
    return take(assembler, {chunk_mark(), pattern(bytes, 1)});
  };
  EXPECT_EQ(told(0, kChunkBytes), "");
  EXPECT_EQ(told(2, 1), "");
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kChunkBytes - 1}) {
    EXPECT_EQ(told(0, bytes), "a chunk of another size");
  }
  EXPECT_EQ(told(2, 2), "a chunk of another size");
  PacketAssembler assembler = waiting_for({7});
  EXPECT_EQ(take(assembler, {chunk_mark()}), "a damaged chunk");
  EXPECT_EQ(take(assembler, {chunk_mark(), pattern(7, 1)}), "");
  EXPECT_EQ(take(assembler, {chunk_mark(), pattern(7, 1)}), "a chunk of no payload");
}

TEST(Packets, NoPacketComesBeforeTheOneBeforeItIsWhole) {
  PacketAssembler assembler = waiting_for({2 * kChunkBytes});
  EXPECT_EQ(take(assembler, {chunk_mark(), pattern(kChunkBytes, 1)}), "");
  EXPECT_NE(take(assembler, {write_packet(Lane::kData, {}, {})}), "");
}

TEST(Packets, PayloadsThatAreNotAsAnnouncedAreRefused) {
  const auto told = [](PayloadEntry entry, std::vector<Buffer> payloads) {
    PacketAssembler assembler(Lane::kData, memory());
    payloads.insert(payloads.begin(), write_packet(Lane::kData, {&entry, 1}, {}));
    return take(assembler, std::move(payloads));
  };
  using How = PayloadEntry::How;
  EXPECT_EQ(told({3, How::kFrame, {}}, {pattern(3, 1)}), "");
  EXPECT_NE(told({3, How::kFrame, {}}, {pattern(4, 1)}), "");
  EXPECT_NE(told({3, How::kFrame, {}}, {}), "");
  EXPECT_NE(told({3, How::kFrame, {}}, {pattern(3, 1), pattern(3, 1)}), "");
  EXPECT_NE(told({3, How::kShared, {}}, {}), "");
  EXPECT_NE(told({0, How::kChunks, {}}, {}), "");
}

TEST(Packets, AnnouncedSizesCostNothingUntilTheyArrive) {
  // 16 TiB are announced.
  PacketAssembler assembler =
      waiting_for(std::vector<std::uint64_t>(Packet::kMostPayloads, kMostPayloadBytes));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(take(assembler, {chunk_mark(), pattern(kChunkBytes, 1)}), "");
  }
  EXPECT_FALSE(assembler.next());
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
