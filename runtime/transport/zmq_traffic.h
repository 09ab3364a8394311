#pragma once

// What both ends of an open connection do alike: cut packets, put them together, share memory, and
// say goodbye. The sockets belong to the caller: frames leave through a function and come in by
// take(). Each lane is put together by itself.

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>

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
  // A message of an unidentified connection, or a damaged one.
  virtual void dropped() = 0;
  virtual void payload_shared(std::uint64_t count) = 0;
  // For payloads in chunks. One for all connections: what one leaves idle, another one uses.
  virtual RecycledMemory& memory() = 0;
};

// Of one connection; the wire's thread.
class ZmqTraffic {
 public:
  // Takes one message for a socket of the connection. The frames are read before it returns.
  using Out = std::function<void(SocketId socket, std::span<const Buffer> frames)>;

  // Makes this end's shared memory, if options want it and the system has it; else payloads travel
  // through the sockets, which the log tells. Both outlive it.
  ZmqTraffic(const ZmqWireOptions& options, ZmqSink& sink);

  // Where this end's memory is; of 0 bytes: there is none.
  const SharedOffer& offer() const;
  // Whether the peer's memory can be mapped here. If not, the peer must not use it.
  bool open_offer(const SharedOffer& offer);
  // Whether the peer sees this end's memory, which is not used before. If not, it is let go.
  void peer_sees_offer(bool sees);

  // As Wire::send(); the connection is open. Counts payloads that went through shared memory.
  void send(Lane lane, const Packet& packet, const Out& out);
  // On both sockets. Nothing may be sent after it.
  void say_bye(const Out& out) const;

  // One message of an open connection; its frames are moved from. No frames stand for a message of
  // too many. The sink is told what is whole by it. Returns what is wrong with it, or "": after
  // that the connection is of no use any more.
  std::string take(ConnectionId id, SocketId socket, std::span<Buffer> frames);

  // The peer has said goodbye on that socket: nothing follows there.
  bool said_bye(SocketId socket) const { return byes_[static_cast<std::size_t>(socket)]; }
  bool any_bye() const { return byes_[0] || byes_[1]; }
  bool all_byes() const { return byes_[0] && byes_[1]; }

 private:
  const ZmqWireOptions& options_;
  ZmqSink& sink_;
  std::unique_ptr<SharedSender> ours_;
  bool peer_sees_ours_ = false;
  std::unique_ptr<SharedReceiver> theirs_;
  std::array<PacketAssembler, kLanes> lanes_;
  std::array<bool, kSockets> byes_{};
};

}  // namespace troupe::runtime
