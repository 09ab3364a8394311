#include "launch/machine/ring_pace.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/transport/zmq_wire.h"

namespace troupe::launch {
namespace {

using runtime::ConnectionId;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::size_t kPayloadBytes = std::size_t{1} << 20;
constexpr std::size_t kMostUnderWay = 2 * kPayloadBytes;
constexpr std::size_t kWarmingBytes = 8 * kPayloadBytes;
constexpr runtime::Duration kMeasured = std::chrono::milliseconds(500);
constexpr runtime::Duration kPatience = std::chrono::seconds(5);

class Adder final : public runtime::WireEvents {
 public:
  void connected(ConnectionId made, const runtime::ConnectionInfo&) override { connection = made; }
  void arrived(ConnectionId, runtime::Lane, runtime::Packet packet) override {
    for (const runtime::Buffer& payload : packet.payloads) {
      const auto part = payload.as<std::int64_t>();
      std::transform(part.begin(), part.end(), sum_.begin(), sum_.begin(), std::plus<>());
      bytes += payload.size();
    }
  }
  void disconnected(ConnectionId, const Error& why) override { end = why; }

  std::optional<ConnectionId> connection;
  std::size_t bytes = 0;
  std::optional<Error> end;

 private:
  std::vector<std::int64_t> sum_ = std::vector<std::int64_t>(kPayloadBytes / sizeof(std::int64_t));
};

}  // namespace

Result<double> measure_ring_pace() {
  const runtime::SteadyClock clock;
  runtime::ZmqWireOptions options;
  options.clock = &clock;
  options.shared_memory = false;
  options.listen = "tcp://127.0.0.1:0";
  ASSIGN_OR_RETURN(const auto listener, runtime::ZmqWire::open(options));
  options.listen.clear();
  ASSIGN_OR_RETURN(const auto dialer, runtime::ZmqWire::open(options));
  ASSIGN_OR_RETURN(const ConnectionId connection, dialer->dial(listener->address()));
  const runtime::Buffer payload = runtime::Buffer::zeroed(kPayloadBytes);
  Adder receiver, sender;
  std::size_t sent = 0, warmed = 0;
  const runtime::TimePoint began = clock.now();
  runtime::TimePoint since = began;
  for (;;) {
    const runtime::TimePoint now = clock.now();
    if (warmed == 0 && receiver.bytes >= kWarmingBytes) {
      warmed = receiver.bytes;
      since = now;
    }
    if (warmed > 0 && now - since >= kMeasured) {
      return static_cast<double>(receiver.bytes - warmed) / runtime::seconds(now - since);
    }
    if (sender.end || receiver.end) return sender.end ? *sender.end : *receiver.end;
    if (now - began >= kPatience + kMeasured) {
      return Error{ErrorKind::kLostPeers, "a connection of this machine with itself is not made"};
    }
    if (sender.connection && sent - receiver.bytes < kMostUnderWay) {
      runtime::Packet packet{runtime::Buffer::zeroed(sizeof(std::uint64_t)), {payload}};
      dialer->send(connection, runtime::Lane::kData, std::move(packet));
      sent += kPayloadBytes;
    }
    dialer->poll(sender, now);
    listener->poll(receiver, now + std::chrono::milliseconds(1));
  }
}

}  // namespace troupe::launch
