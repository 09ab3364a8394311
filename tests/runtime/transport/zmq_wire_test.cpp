// Two wires that have every reason to get along: what is sent arrives, once, whole, in order.

#include "runtime/transport/zmq_wire.h"
#include "runtime/transport/zmq_frames.h"

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ostream>
#include <thread>

#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

constexpr std::size_t kChunk = kChunkBytes;

struct Medium {
  const char* name;
  bool ipc;
  bool curve;
  bool shared;
  const char* ucx = nullptr;  // UCX_TLS, where data travel over UCX

  friend void PrintTo(const Medium& medium, std::ostream* out) { *out << medium.name; }
};

class ZmqWireOver : public testing::TestWithParam<Medium> {
 protected:
  // Connected to each other; the lower sockets' options are the parameter's.
  void SetUp() override {
    const Medium& medium = GetParam();
    ZmqWireOptions options;
    options.clock = &stage_clock();
    options.shared_memory = medium.shared;
    options.linger = std::chrono::minutes(1);  // however slow the machine
    if (medium.curve) {
      options.keys = *make_keys();
      dialer_keys_ = *make_keys();
      options.allowed = {{dialer_keys_.public_key, "dialer"}};
      server_key_ = options.keys->public_key;
    }
    options.listen = medium.ipc ? fresh_ipc_address() : "tcp://127.0.0.1:0";
    options.ucx = fabric();
    listener_ = std::make_unique<StageEnd>(options);
    options.listen = "";
    options.ucx = fabric();
    options.allowed.clear();
    if (medium.curve) options.keys = dialer_keys_;
    options.server_key = server_key_;
    dialer_ = std::make_unique<StageEnd>(options);
    at_dialer_ = dialer_->dial(listener_->wire->address());
    ASSERT_TRUE(
        play([&] { return !listener_->diary.open.empty() && !dialer_->diary.open.empty(); }));
    at_listener_ = listener_->diary.open[0];
  }
  static std::shared_ptr<UcxFabric> fabric() {
    return GetParam().ucx == nullptr ? nullptr : open_ucx(GetParam().ucx);
  }
  void TearDown() override { end_both(); }
  // At the same time: what one has still to send, the other may have to fetch.
  void end_both() {
    std::thread other([&] { listener_.reset(); });
    dialer_.reset();
    other.join();
  }
  bool play(const std::function<bool()>& condition) {
    return runtime::play({listener_.get(), dialer_.get()}, condition);
  }
  bool arrives(const StageEnd& end, std::size_t count) {
    return play([&] { return end.diary.packets.size() >= count; });
  }

  KeyPair dialer_keys_;
  std::string server_key_;
  std::unique_ptr<StageEnd> listener_, dialer_;
  ConnectionId at_listener_, at_dialer_;
};

TEST_P(ZmqWireOver, BothEndsLearnOfEachOther) {
  const ConnectionInfo& dialed = dialer_->diary.infos.at(at_dialer_);
  EXPECT_TRUE(dialed.dialed);
  EXPECT_EQ(dialed.address, listener_->wire->address());
  EXPECT_EQ(dialed.key, server_key_);
  const ConnectionInfo& accepted = listener_->diary.infos.at(at_listener_);
  EXPECT_FALSE(accepted.dialed);
  EXPECT_EQ(accepted.key, dialer_keys_.public_key);
  EXPECT_TRUE(accepted.address.starts_with(GetParam().ipc ? "ipc://" : "tcp://127.0.0.1:"));
}

TEST_P(ZmqWireOver, PayloadsOfEverySizeArriveWholeInBothDirections) {
  const std::vector<std::vector<std::size_t>> sizes = {
      {},           {0},           {1},
      {kChunk - 1}, {kChunk},      {kChunk + 1},
      {0, 7, 0},    {64 << 10},    {10 * kChunk + 3, 5, 3 * kChunk},
      {8192, 8191}, {100, 200000}, {4096, 4095}};
  // The listener knows by then whether its memory is seen.
  dialer_->wire->send(at_dialer_, Lane::kControl, packet_of(99, {}));
  ASSERT_TRUE(arrives(*listener_, 1));
  listener_->diary.packets.clear();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    dialer_->wire->send(at_dialer_, Lane::kData, packet_of(i, sizes[i]));
    listener_->wire->send(at_listener_, Lane::kData, packet_of(i + 50, sizes[i]));
  }
  ASSERT_TRUE(arrives(*listener_, sizes.size()));
  ASSERT_TRUE(arrives(*dialer_, sizes.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(is_packet(listener_->diary.packets[i].packet, i, sizes[i])) << i;
    EXPECT_TRUE(is_packet(dialer_->diary.packets[i].packet, i + 50, sizes[i])) << i;
  }
  EXPECT_EQ(dialer_->wire->counters().payloads_over_ucx > 0, GetParam().ucx != nullptr);
  if (!GetParam().shared) {
    EXPECT_EQ(dialer_->wire->counters().payloads_shared, 0u);
  } else {
    EXPECT_EQ(dialer_->wire->counters().payloads_shared, 10u);
    EXPECT_EQ(listener_->wire->counters().payloads_shared, 10u);
  }
}

TEST_P(ZmqWireOver, APacketOfAThousandPayloadsArrives) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 1000; ++i) sizes.push_back(i * 37 % 9000);
  dialer_->wire->send(at_dialer_, Lane::kData, packet_of(9, sizes));
  ASSERT_TRUE(arrives(*listener_, 1));
  EXPECT_TRUE(is_packet(listener_->diary.packets[0].packet, 9, sizes));
}

TEST_P(ZmqWireOver, EachLaneKeepsItsOrder) {
  constexpr std::array kAll = {Lane::kControl, Lane::kData, Lane::kMetrics};
  std::map<Lane, std::uint64_t> sent;
  std::map<Lane, std::vector<std::vector<std::size_t>>> sizes;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const Lane lane = kAll[i % 3];
    // Some data are in chunks, some take one frame and some none: they overtake on their way.
    const std::size_t bytes = lane != Lane::kData ? i : i % 30 == 1 ? 2 * kChunk + i : i * 1000;
    sizes[lane].push_back({bytes});
    dialer_->wire->send(at_dialer_, lane, packet_of(sent[lane]++, {bytes}));
  }
  ASSERT_TRUE(arrives(*listener_, 600));
  std::map<Lane, std::uint64_t> seen;
  for (const ArrivedPacket& arrived : listener_->diary.packets) {
    const std::uint64_t number = seen[arrived.lane]++;
    ASSERT_TRUE(is_packet(arrived.packet, number, sizes[arrived.lane][number])) << number;
  }
}

TEST_P(ZmqWireOver, WhatWasSentBeforeACloseArrivesBeforeTheEnd) {
  dialer_->wire->send(at_dialer_, Lane::kData, packet_of(1, {20 * kChunk}));
  dialer_->wire->send(at_dialer_, Lane::kMetrics, packet_of(2, {10}));
  dialer_->wire->close(at_dialer_);
  ASSERT_TRUE(play([&] { return listener_->diary.ends.contains(at_listener_); }));
  EXPECT_EQ(listener_->diary.packets.size(), 2u);
  EXPECT_EQ(listener_->diary.ends[at_listener_], "the other end closed the connection");
  EXPECT_TRUE(dialer_->diary.ends.empty());
}

TEST_P(ZmqWireOver, WhatAListenerSentBeforeItsCloseArrivesToo) {
  listener_->wire->send(at_listener_, Lane::kData, packet_of(1, {20 * kChunk}));
  listener_->wire->send(at_listener_, Lane::kControl, packet_of(2, {10}));
  listener_->wire->close(at_listener_);
  ASSERT_TRUE(play([&] { return dialer_->diary.ends.contains(at_dialer_); }));
  EXPECT_EQ(dialer_->diary.packets.size(), 2u);
  EXPECT_EQ(dialer_->diary.ends[at_dialer_], "the other end closed the connection");
  EXPECT_TRUE(listener_->diary.ends.empty());
}

TEST_P(ZmqWireOver, TheEndOfAWireClosesItsConnections) {
  listener_->wire->send(at_listener_, Lane::kData, packet_of(1, {3 * kChunk}));
  std::atomic<bool> has_gone = false;
  std::thread end([&] {
    listener_->wire.reset();
    has_gone = true;
  });
  // The dialer does not rest before: UCX sends no more than the other end takes.
  const bool ended = runtime::play(
      {dialer_.get()}, [&] { return has_gone && dialer_->diary.ends.contains(at_dialer_); });
  end.join();
  ASSERT_TRUE(ended);
  ASSERT_EQ(dialer_->diary.packets.size(), 1u);
  EXPECT_TRUE(is_packet(dialer_->diary.packets[0].packet, 1, {3 * kChunk}));
}

TEST_P(ZmqWireOver, BuffersOutliveConnectionAndWires) {
  dialer_->wire->send(at_dialer_, Lane::kData, packet_of(1, {200000, 3 * kChunk, 10000}));
  ASSERT_TRUE(arrives(*listener_, 1));
  const Packet kept = std::move(listener_->diary.packets[0].packet);
  end_both();
  EXPECT_TRUE(is_packet(kept, 1, {200000, 3 * kChunk, 10000}));
}

TEST_P(ZmqWireOver, AMessageForAConnectionThatWentIsIgnored) {
  listener_->wire->close(at_listener_);
  listener_->wire->send(at_listener_, Lane::kData, packet_of(1, {1}));
  listener_->wire->send(ConnectionId{999}, Lane::kData, packet_of(1, {1}));
  dialer_->wire->send(at_dialer_, Lane::kData, packet_of(1, {10}));
  ASSERT_TRUE(play([&] { return dialer_->diary.ends.contains(at_dialer_); }));
  EXPECT_TRUE(dialer_->diary.packets.empty());
  EXPECT_TRUE(listener_->diary.packets.empty());
}

TEST_P(ZmqWireOver, ConnectionsLeaveNoDescriptorsBehind) {
  dialer_->wire->close(at_dialer_);
  ASSERT_TRUE(play([&] { return listener_->diary.ends.size() == 1; }));
  int at_first = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    const ConnectionId id = dialer_->dial(listener_->wire->address());
    ASSERT_TRUE(play([&] { return dialer_->diary.infos.contains(id); }));
    dialer_->wire->close(id);
    ASSERT_TRUE(play([&] { return listener_->diary.ends.size() == i + 2; }));
    if (i == 20) at_first = open_descriptors();
  }
  // A few sockets may still be on their way out.
  EXPECT_TRUE(play([&] { return open_descriptors() <= at_first + 30; })) << open_descriptors();
}

INSTANTIATE_TEST_SUITE_P(
    Media, ZmqWireOver,
    testing::Values(Medium{"Tcp", false, false, false}, Medium{"TcpShared", false, false, true},
                    Medium{"TcpCurve", false, true, false},
                    Medium{"TcpCurveShared", false, true, true}, Medium{"Ipc", true, false, false},
                    Medium{"IpcShared", true, false, true}, Medium{"IpcCurve", true, true, false},
                    Medium{"UcxTcp", false, false, false, "tcp"},
                    Medium{"UcxShm", false, false, false, "shm"},
                    Medium{"UcxTcpCurve", false, true, false, "tcp"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ZmqWire, ADialWaitsForItsListener) {
  ZmqWireOptions options = plain();
  StageEnd dialer(options);
  options.listen = fresh_ipc_address();
  const ConnectionId id = dialer.dial(options.listen);
  for (int i = 0; i < 20; ++i) {
    dialer.wire->poll(dialer.diary, stage_clock().now() + std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(dialer.diary.open.empty());
  StageEnd listener(options);
  EXPECT_TRUE(play({&dialer, &listener}, [&] { return dialer.diary.infos.contains(id); }));
}

// One large payload over a new connection, which stays; where it was put together.
const std::byte* place_of_payload(StageEnd& listener, StageEnd& dialer) {
  const ConnectionId id = dialer.dial(listener.wire->address());
  EXPECT_TRUE(play({&dialer, &listener}, [&] { return dialer.diary.infos.contains(id); }));
  dialer.wire->send(id, Lane::kData, packet_of(1, {8 * kChunk}));
  EXPECT_TRUE(play({&dialer, &listener}, [&] { return !listener.diary.packets.empty(); }));
  const std::byte* place = listener.diary.packets.at(0).packet.payloads.at(0).data();
  listener.diary.packets.clear();
  return place;
}

TEST(ZmqWire, AllConnectionsUseTheSameIdleMemory) {
  ZmqWireOptions options = plain();
  options.shared_memory = false;
  options.listen = fresh_ipc_address();
  StageEnd listener(options);
  options.listen = "";
  StageEnd dialer(options);
  const std::byte* first = place_of_payload(listener, dialer);
  EXPECT_EQ(place_of_payload(listener, dialer), first);
}

TEST(ZmqWire, AFullSharedMemorySendsInline) {
  ZmqWireOptions options = plain();
  options.shared_bytes = 256 << 10;
  options.listen = fresh_ipc_address();
  StageEnd listener(options);
  options.listen = "";
  StageEnd dialer(options);
  const ConnectionId id = dialer.dial(listener.wire->address());
  ASSERT_TRUE(play({&dialer, &listener}, [&] { return dialer.diary.infos.contains(id); }));
  const auto send = [&](std::uint64_t first, std::size_t count) {
    for (std::uint64_t i = 0; i < 5; ++i) {
      dialer.wire->send(id, Lane::kData, packet_of(first + i, {100000}));
    }
    ASSERT_TRUE(play({&dialer, &listener}, [&] { return listener.diary.packets.size() == count; }));
    for (std::uint64_t i = 0; i < 5; ++i) {
      const std::size_t position = count - 5 + i;
      EXPECT_TRUE(is_packet(listener.diary.packets[position].packet, first + i, {100000}));
    }
  };
  send(0, 5);
  EXPECT_EQ(dialer.wire->counters().payloads_shared, 2u);
  // Held Buffers hold their ranges; when they go there is room again.
  send(5, 10);
  EXPECT_EQ(dialer.wire->counters().payloads_shared, 2u);
  listener.diary.packets.clear();
  send(10, 5);
  EXPECT_EQ(dialer.wire->counters().payloads_shared, 4u);
}

TEST(ZmqWire, AnEndWithoutSharedMemoryIsServedInline) {
  ZmqWireOptions options = plain();
  options.listen = fresh_ipc_address();
  StageEnd listener(options);
  options.listen = "";
  options.shared_memory = false;
  StageEnd dialer(options);
  const ConnectionId id = dialer.dial(listener.wire->address());
  ASSERT_TRUE(play({&dialer, &listener}, [&] { return dialer.diary.infos.contains(id); }));
  listener.wire->send(listener.diary.open[0], Lane::kData, packet_of(1, {1 << 20}));
  dialer.wire->send(id, Lane::kData, packet_of(2, {1 << 20}));
  ASSERT_TRUE(play({&dialer, &listener}, [&] {
    return listener.diary.packets.size() == 1 && dialer.diary.packets.size() == 1;
  }));
  EXPECT_EQ(listener.wire->counters().payloads_shared, 0u);
  EXPECT_TRUE(is_packet(dialer.diary.packets[0].packet, 1, {1 << 20}));
}

// On a slow line each of its messages takes long, and nothing else is a sign of life meanwhile.
TEST(ZmqWire, LargePacketOfControlIsSeenToComeInParts) {
  ZmqWireOptions options = plain();
  options.shared_memory = false;
  options.listen = fresh_ipc_address();
  StageEnd listener(options);
  options.listen = "";
  StageEnd dialer(options);
  const ConnectionId id = dialer.dial(listener.wire->address());
  ASSERT_TRUE(play({&dialer, &listener}, [&] { return dialer.diary.infos.contains(id); }));
  const std::vector<std::size_t> sizes{1 << 20, 0, 100'000, 200'000, 1, 300'000, 256 << 10, 7};
  dialer.wire->send(id, Lane::kControl, packet_of(1, sizes));
  dialer.wire->send(id, Lane::kControl, packet_of(2, {5}));
  ASSERT_TRUE(play({&dialer, &listener}, [&] { return listener.diary.packets.size() == 2; }));
  EXPECT_TRUE(is_packet(listener.diary.packets[0].packet, 1, sizes));
  EXPECT_TRUE(is_packet(listener.diary.packets[1].packet, 2, {5}));
  EXPECT_GE(listener.diary.parts, 7) << "1.9 MB in messages of 256 KiB";
}

TEST(ZmqWire, WakeEndsAWaitFromAnotherThread) {
  StageEnd end(plain());
  std::thread waker([&] { end.wire->wake(); });
  end.wire->poll(end.diary, TimePoint::max());
  waker.join();
  end.wire->wake();
  end.wire->poll(end.diary, TimePoint::max());
}

// Closes whatever it hears of.
class Closer : public WireDiary {
 public:
  explicit Closer(ZmqWire& wire) : wire_(wire) {}
  void arrived(ConnectionId connection, Lane lane, Packet packet) override {
    WireDiary::arrived(connection, lane, std::move(packet));
    wire_.close(connection);
  }

 private:
  ZmqWire& wire_;
};

TEST(ZmqWire, NothingIsToldOfAConnectionClosedWithinAnEvent) {
  ZmqWireOptions options = plain();
  options.listen = fresh_ipc_address();
  StageEnd listener(options);
  options.listen = "";
  StageEnd dialer(options);
  const ConnectionId id = dialer.dial(listener.wire->address());
  ASSERT_TRUE(play({&dialer, &listener}, [&] { return dialer.diary.infos.contains(id); }));
  for (std::uint64_t i = 0; i < 10; ++i) dialer.wire->send(id, Lane::kData, packet_of(i, {10}));
  Closer closer(*listener.wire);
  const TimePoint deadline = stage_clock().now() + std::chrono::seconds(60);
  while (!dialer.diary.ends.contains(id)) {
    ASSERT_LT(stage_clock().now(), deadline);
    listener.wire->poll(closer, stage_clock().now() + std::chrono::milliseconds(1));
    dialer.wire->poll(dialer.diary, stage_clock().now() + std::chrono::milliseconds(1));
  }
  EXPECT_EQ(closer.packets.size(), 1u);
  EXPECT_TRUE(closer.ends.empty());
}

}  // namespace
}  // namespace troupe::runtime
