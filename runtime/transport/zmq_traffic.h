#pragma once

// What both ends of an open connection do alike: cut packets, put them together, share memory, and
// say goodbye. Sockets are somebody else's: frames go out through a function and come in by take().
//
// Lanes have numbers of their own and know nothing of each other. The data lane has the stripes and
// chunks that were agreed on; control and metrics have one stripe and chunks of kSmallChunkBytes,
// and no more than that in one message: signs of life wait behind it on a slow line.

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/shared_payload.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/zmq_memory.h"
#include "runtime/transport/zmq_packets.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::runtime {

// Where connections report to, and what they have in common: the wire, which outlives them. Called
// on the wire's thread, from within serve() and the like; nothing here calls back.
class ZmqSink {
 public:
  virtual ~ZmqSink() = default;
  // Never given before.
  virtual ConnectionId next_id() = 0;
  // As WireEvents has them: connected() once, then arrived(), then disconnected() once.
  virtual void connected(ConnectionId connection, ConnectionInfo info) = 0;
  virtual void arrived(ConnectionId connection, Lane lane, Packet packet) = 0;
  virtual void arriving(ConnectionId connection) = 0;
  virtual void disconnected(ConnectionId connection, Error why) = 0;
  // A message of nobody, or a damaged one.
  virtual void dropped() = 0;
  virtual void payload_shared(std::uint64_t count) = 0;
  // For payloads in chunks. One for all connections: what one leaves idle, another one uses.
  virtual RecycledMemory& memory() = 0;
};

// Of one connection; the wire's thread.
class ZmqTraffic {
 public:
  // Takes one message for a socket of the connection. The frames are read before it returns.
  using Out = std::function<void(Lane lane, int stripe, std::span<const Buffer> frames)>;

  // Makes this end's shared memory, if options want it and the system has it; else payloads travel
  // through the sockets, which the log tells. Both outlive it.
  ZmqTraffic(const ZmqWireOptions& options, ZmqSink& sink);

  // The handshake's outcome, in any order before the first packet: what both ends can take (with
  // which all begins anew),
  void agree_on(std::size_t chunk_bytes, int stripes);
  // where this end's memory is (of 0 bytes: there is none),
  const SharedOffer& offer() const;
  // whether the peer's can be mapped here (if not, the peer must not use it),
  bool open_offer(const SharedOffer& offer);
  // and whether the peer sees ours; if not, it is let go.
  void peer_sees_offer(bool sees);

  // As Wire::send(); the connection is open. Counts payloads that went through shared memory.
  void send(Lane lane, const Packet& packet, const Out& out);
  // On every strand. Nothing may be sent after it.
  void say_bye(const Out& out) const;

  // One message of an open connection; its frames are moved from. No frames stand for a message of
  // too many. The sink is told what is whole by it. Returns what is wrong with it, or "": after
  // that the connection is of no use any more.
  std::string take(ConnectionId id, Lane lane, int stripe, std::span<Buffer> frames);

  // What the peer has said goodbye on: nothing follows there.
  bool said_bye(Lane lane, int stripe) const { return byes_.contains({lane, stripe}); }
  bool any_bye() const { return !byes_.empty(); }
  bool all_byes() const { return static_cast<int>(byes_.size()) == stripes_ + 2; }

 private:
  // Both directions of a lane.
  struct LaneEnds {
    LaneEnds(const PacketLimits& limits, RecycledMemory& memory)
        : cutter(limits), assembler(limits, memory) {}
    PacketCutter cutter;
    PacketAssembler assembler;
  };

  const ZmqWireOptions& options_;
  ZmqSink& sink_;
  int stripes_ = 1;
  std::unique_ptr<SharedSender> ours_;
  std::unique_ptr<SharedReceiver> theirs_;
  std::vector<LaneEnds> lanes_;  // by Lane
  std::set<std::pair<Lane, int>> byes_;
};

}  // namespace troupe::runtime
