#pragma once

// The dialing end of one connection: a DEALER for control and one for data. Until the connection is
// open it is tried again and again, each time with new sockets and a new token, since what a broken
// attempt left at the listener must not meet the next one. Once open it is never made again from
// here.
//
// The dialer waits without end for a listener that is not there, a network that drops everything
// and a peer that is stopped: its caller knows how long that makes sense. It ends for what cannot
// get better: a refusal, and a handshake that the other end broke off several times in a row.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/resolve.h"
#include "runtime/transport/zmq_socket.h"
#include "runtime/transport/zmq_traffic.h"

namespace troupe::runtime {

// Where a dial leads, and what the other end must prove.
struct DialedAddress {
  Address address;
  ResolvedAddress resolved;
  std::string server_key;  // "" for a connection without encryption
};

// The wire's thread.
class ZmqDialer {
 public:
  // The first attempt. The references outlive the dialer. Errors: as ZmqSocket::open.
  static Result<std::unique_ptr<ZmqDialer>> begin(ZmqContext& context,
                                                  const ZmqWireOptions& options, ZmqSink& sink,
                                                  ConnectionId id, DialedAddress to);
  // As part().
  ~ZmqDialer();
  ZmqDialer(const ZmqDialer&) = delete;
  ZmqDialer& operator=(const ZmqDialer&) = delete;

  // Appends the sockets that the wire waits for; they are good until the next call of anything
  // here.
  void add_to(std::vector<ZmqSocket*>& sockets);
  // Reads what is there, control before data, and does what is due.
  void serve(TimePoint now);
  // When serve() is due though nothing comes; max(): never.
  TimePoint next_deadline() const { return deadline_; }
  // The sink was told of the end; nothing follows, and there is nothing left to say either.
  bool ended() const { return state_ == State::kEnded; }

  // Says goodbye if it is open, once. After it only drop_if_lost() may be called.
  void part();
  // Spares the library the wait until it gives up on a peer that is gone.
  void drop_if_lost();

  // As Wire::send(). Ignored until the connection is open.
  void send(Lane lane, const Packet& packet);

 private:
  // serve() and the events of the sockets move it on.
  enum class State : std::uint8_t {
    kResting,    // until deadline_, then a new attempt
    kAttaching,  // waits for both sockets, and then for the welcome
    kOpen,
    kAccusing,  // the sink was told of the end; until deadline_ the peer may read why
    kEnded,
    kParted,  // by this end
  };

  ZmqDialer(ZmqContext& context, const ZmqWireOptions& options, ZmqSink& sink, ConnectionId id,
            DialedAddress to);
  // A new attempt, with a new token. Errors: as ZmqSocket::open.
  Result<void> attempt(TimePoint now);
  // False: the system cannot connect there now.
  Result<bool> connect(SocketId id);
  void drop_sockets();
  // Gives the attempt up, and begins another one after a while, which grows to a second.
  void rest(TimePoint now);
  // For good; the sink is told.
  void end(std::string why, ErrorKind kind = ErrorKind::kLostPeers);
  // For good, and the peer is told what it did wrong.
  void accuse(const ZmqTraffic::End& end, TimePoint now);
  // Reads and forgets, until the peer had its time.
  void ignore_all(TimePoint now);
  // What a monitor told. False: the sockets are gone.
  bool read_events(SocketId id, TimePoint now);
  bool socket_failed(SocketId id, ZmqEvent::What what, TimePoint now);
  // Why an attempt that failed so is the last; nothing: another one may do better.
  std::optional<Error> last_failure(ZmqEvent::What what, TimePoint now);
  void attach(SocketId id);
  // The answer to the attaches, on control.
  void read_answer();
  // Some of each socket; everything, before the connection's end is told.
  void read_open(bool everything, TimePoint now);
  ZmqSocket& socket(SocketId id) { return *sockets_[static_cast<std::size_t>(id)]; }
  ZmqTraffic::Out out();

  ZmqContext& context_;
  const ZmqWireOptions& options_;
  ZmqSink& sink_;
  const ConnectionId id_;
  const DialedAddress to_;
  State state_ = State::kResting;
  TimePoint deadline_{};
  TimePoint begun_{};          // since when the newest sockets are there
  bool lacks_data_ = false;    // nobody listens for data, and control is not ready yet
  int attempts_ = 0;           // since the dial
  int failed_handshakes_ = 0;  // broken off by the other end for no reason that was told
  Token token_{};
  std::array<std::unique_ptr<ZmqSocket>, kSockets> sockets_;  // both there, or none
  std::optional<ZmqTraffic> traffic_;
};

}  // namespace troupe::runtime
