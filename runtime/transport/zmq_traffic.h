#pragma once

// What both ends of an open connection do alike: cut packets, put them together, share memory, and
// say goodbye. Sockets are somebody else's: frames go out through a function and come in by take().

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/transport/shared_payload.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/zmq_packets.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::runtime {

// Where connections report to.
class ZmqSink {
 public:
  virtual ~ZmqSink() = default;
  virtual ConnectionId next_id() = 0;
  virtual void connected(ConnectionId connection, ConnectionInfo info) = 0;
  virtual void arrived(ConnectionId connection, Lane lane, Packet packet) = 0;
  virtual void disconnected(ConnectionId connection, std::string why) = 0;
  virtual void dropped() = 0;  // a message of nobody, or a damaged one
  virtual void payload_shared(std::uint64_t count) = 0;
};

class ZmqTraffic {
 public:
  using Out = std::function<void(Lane lane, int stripe, std::span<const Buffer> frames)>;

  // Makes this end's shared memory, if options want it and the system has it.
  explicit ZmqTraffic(const ZmqWireOptions& options);

  // The handshake's outcome, in any order before the first packet.
  void agree_on(std::size_t chunk_bytes, int stripes);
  const SharedOffer& offer() const;
  // Maps the peer's memory. False: it cannot be reached, so the peer must not use it.
  bool open_offer(const SharedOffer& offer);
  // The peer said whether it sees ours.
  void peer_sees_offer(bool sees);

  void send(Lane lane, const Packet& packet, const Out& out, ZmqSink& sink);
  void say_bye(const Out& out) const;

  // One message of an open connection; its frames are moved from. Returns what is wrong with it, or
  // "".
  std::string take(ConnectionId id, Lane lane, int stripe, std::span<Buffer> frames, ZmqSink& sink);

  bool said_bye(Lane lane, int stripe) const { return byes_.contains({lane, stripe}); }
  bool any_bye() const { return !byes_.empty(); }
  bool all_byes() const { return static_cast<int>(byes_.size()) == stripes_ + 2; }

 private:
  struct LaneEnds {
    explicit LaneEnds(const PacketLimits& limits) : cutter(limits), assembler(limits) {}
    PacketCutter cutter;
    PacketAssembler assembler;
  };

  const ZmqWireOptions& options_;
  int stripes_ = 1;
  std::unique_ptr<SharedSender> ours_;
  std::unique_ptr<SharedReceiver> theirs_;
  std::vector<LaneEnds> lanes_;  // by Lane
  std::set<std::pair<Lane, int>> byes_;
};

}  // namespace troupe::runtime
