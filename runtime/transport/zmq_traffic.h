#pragma once

// The part that both ends of an open connection do alike: cut packets, put them together, share
// memory, and say goodbye. The sockets belong to the caller: frames leave through a function and
// come in by take(). Each lane is put together by itself. Where this end's fabric is UCX, data and
// metrics leave and come through a stream of that, and the data socket carries a goodbye alone.

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>

#include "runtime/transport/shared_payload.h"
#include "runtime/transport/ucx_fabric.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/zmq_memory.h"
#include "runtime/transport/zmq_packets.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::runtime {

// Connections report here, and share this: it outlives them. Events are kept until the driver is
// told, since the driver may close a connection that it hears of. The wire's thread.
class ZmqSink {
 public:
  ZmqWireCounters counters;
  // For payloads in chunks. One for all connections: what one leaves idle, another one uses.
  RecycledMemory memory;

  // Never given before.
  ConnectionId next_id() { return {++last_id_}; }
  // The driver knows of a connection that it has dialed, until it closes it.
  void dialed(ConnectionId connection) { known_.insert(connection); }
  void closed(ConnectionId connection) { known_.erase(connection); }
  // As WireEvents has them: connected() once, then arrived(), then disconnected() once.
  void connected(ConnectionId connection, ConnectionInfo info) {
    known_.insert(connection);
    happened_.push_back({connection, std::move(info)});
  }
  void arrived(ConnectionId connection, Lane lane, Packet packet) {
    happened_.push_back({connection, Arrived{lane, std::move(packet)}});
  }
  void arriving(ConnectionId connection) { happened_.push_back({connection, Arriving{}}); }
  void disconnected(ConnectionId connection, Error why) {
    happened_.push_back({connection, std::move(why)});
  }
  // A message of an unidentified connection, or a damaged one.
  void dropped() { ++counters.dropped; }

  bool has_news() const { return !happened_.empty(); }
  // Nothing of a connection that the driver has closed.
  void tell(WireEvents& driver);

 private:
  struct Arrived {
    Lane lane;
    Packet packet;
  };
  struct Arriving {};
  struct Event {
    ConnectionId id;
    std::variant<ConnectionInfo, Arrived, Arriving, Error> what;
  };

  std::set<ConnectionId> known_;
  std::deque<Event> happened_;
  std::uint64_t last_id_ = 0;
};

// The traffic of one connection; the wire's thread.
class ZmqTraffic {
 public:
  // Takes one message for a socket of the connection. The frames are read before it returns.
  using Out = std::function<void(SocketId socket, std::span<const Buffer> frames)>;

  // Makes this end's shared memory, if options want it and the system has it; else payloads travel
  // through the sockets, which the log tells. Both outlive it. The token is the connection's.
  ZmqTraffic(const ZmqWireOptions& options, ZmqSink& sink, const Token& token, bool is_dialer);

  // Where this end's memory is; of 0 bytes: there is none.
  const SharedOffer& offer() const;
  // Whether the peer's memory can be mapped here. If not, the peer must not use it.
  bool open_offer(const SharedOffer& offer);
  // Whether the peer sees this end's memory, which is not used before. If not, it is let go.
  void peer_sees_offer(bool sees);

  // Where this end's UCX is; of no address: there is none.
  const UcxOffer& ucx() const;
  // Takes up the peer's, which may have none: it can then send and be sent control only. `host` is
  // the peer's, numeric. Returns why this end will not; "": it does.
  std::string open_ucx(const UcxOffer& peer, const std::string& host, bool loopback);

  // As Wire::send(); the connection is open. Counts payloads that went through shared memory.
  void send(Lane lane, const Packet& packet, const Out& out);
  // On both sockets, and over UCX, where the linger begins. Nothing may be sent after it.
  void say_bye(const Out& out);

  // Why a connection ends by a message.
  struct End {
    std::string why;
    std::string accusation;  // tells a peer that broke a rule which one; "" for others
  };
  // One message of an open connection; its frames are moved from. No frames stand for a message of
  // too many. The sink is told what is whole by it. Nothing: the connection goes on.
  std::optional<End> take(ConnectionId id, SocketId socket, std::span<Buffer> frames,
                          TimePoint now);

  // The same of what has come over UCX.
  std::optional<End> take_ucx(ConnectionId id, TimePoint now);

  // The peer has said goodbye on that socket: nothing follows there.
  bool said_bye(SocketId socket) const { return byes_[static_cast<std::size_t>(socket)]; }
  // When the goodbye on the other socket is overdue; max(): it has said none.
  TimePoint parting_by() const { return parting_by_; }

 private:
  // Messages keep their order within each.
  enum class Way : std::uint8_t { kControl, kData, kUcx };
  static constexpr std::size_t kWays = 3;

  std::optional<End> take_by(Way way, ConnectionId id, std::span<Buffer> frames, TimePoint now);
  // The fault of the message; "": none.
  std::string read(ConnectionId id, Way way, std::span<Buffer> frames);
  bool is_parted() const;

  const ZmqWireOptions& options_;
  ZmqSink& sink_;
  std::unique_ptr<SharedSender> ours_;
  bool peer_sees_ours_ = false;
  std::unique_ptr<SharedReceiver> theirs_;
  std::unique_ptr<UcxStream> stream_;  // null: this end's fabric is ZeroMQ
  bool lacks_ucx_ = false;             // the peer, and there was something to send
  std::array<PacketAssembler, kLanes> lanes_;
  std::array<bool, kWays> byes_{};
  TimePoint parting_by_ = TimePoint::max();
};

}  // namespace troupe::runtime
