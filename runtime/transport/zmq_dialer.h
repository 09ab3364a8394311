#pragma once

// The dialing end of one connection: a DEALER per strand. Until the connection is open it is tried
// again and again, each time with new sockets and a new token, since what a broken attempt left
// behind at the listener must not meet the next one. Once open it is never made again from here.
//
// Nobody there, a network that drops everything and a peer that is stopped are waited for without
// end: whoever dials knows how long that makes sense. What cannot get better ends it: a refusal,
// and a handshake that the other end broke off several times in a row.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/resolve.h"
#include "runtime/transport/zmq_socket.h"
#include "runtime/transport/zmq_traffic.h"

namespace troupe::runtime {

// The wire's thread.
class ZmqDialer {
 public:
  // The first attempt. `server_key` is "" for a connection without encryption. The references
  // outlive the dialer. Errors: as ZmqSocket::open.
  static Result<std::unique_ptr<ZmqDialer>> begin(ZmqContext& context,
                                                  const ZmqWireOptions& options, ZmqSink& sink,
                                                  ConnectionId id, Address address,
                                                  ResolvedAddress resolved, std::string server_key);
  // As part().
  ~ZmqDialer();
  ZmqDialer(const ZmqDialer&) = delete;
  ZmqDialer& operator=(const ZmqDialer&) = delete;

  // Appends those that are to be waited for; they are good until the next call of anything here.
  void add_to(std::vector<ZmqSocket*>& sockets);
  // Reads what is there, control before the rest, and does what is due.
  void serve(TimePoint now);
  // When serve() is due though nothing comes; max(): never.
  TimePoint next_deadline() const;
  // The sink was told of the end; nothing follows, and there is nothing left to say either.
  bool ended() const { return state_ == State::kEnded; }

  // Says goodbye if it is open, once. After it only drop_if_lost() may be called.
  void part();
  // Spares the library the wait until it gives up on a peer that is gone.
  void drop_if_lost();

  // As Wire::send(). Ignored until the connection is open.
  void send(Lane lane, const Packet& packet);

 private:
  // What the connection is about; serve() and the events of its sockets move it on.
  enum class State : std::uint8_t {
    kResting,    // until deadline_, then a new attempt
    kAttaching,  // waits for the control socket, and then for the welcome
    kJoining,    // waits for the other sockets, and then for the open
    kOpen,
    kAccusing,  // the sink was told of the end; until deadline_ the peer may read why
    kEnded,
    kParted,  // by this end
  };
  using StrandId = std::pair<Lane, int>;  // lane and stripe

  ZmqDialer(ZmqContext& context, const ZmqWireOptions& options, ZmqSink& sink, ConnectionId id,
            Address address, ResolvedAddress resolved, std::string server_key);
  // A new attempt, with a new token. Errors: as ZmqSocket::open.
  Result<void> attempt(TimePoint now);
  // False: the system cannot connect there now.
  Result<bool> add_strand(StrandId id, const std::string& endpoint);
  Result<bool> add_other_strands(const WireWelcome& welcome);
  // Gives the attempt up, and begins another one after a while, which grows to a second.
  void rest(TimePoint now);
  // For good; the sink is told.
  void end(std::string why, ErrorKind kind = ErrorKind::kLostPeers);
  // For good, and the peer is told what it did wrong.
  void accuse(const std::string& wrong, TimePoint now);
  // Reads and forgets, until the peer had its time.
  void ignore_all(TimePoint now);
  // What a monitor told. False: the strands are gone, and the ids and sockets with them.
  bool read_events(StrandId id, ZmqSocket& socket, TimePoint now);
  bool strand_failed(StrandId id, ZmqEvent::What what, TimePoint now);
  // Whether a handshake that failed had time left.
  bool was_in_time(TimePoint now) const;
  // The steps of a connection, in the order of zmq_frames.h.
  void attach(StrandId id);
  void read_control(TimePoint now);
  void take_answer(std::span<const std::byte> frame, TimePoint now);
  void join(const WireWelcome& welcome, TimePoint now);
  void open();
  // False: the connection has ended.
  bool read_strand(StrandId id, int most, TimePoint now);
  // Some of each strand; everything, before the connection's end is told.
  void read_open(bool everything, TimePoint now);
  ZmqTraffic::Out out();

  ZmqContext& context_;
  const ZmqWireOptions& options_;
  ZmqSink& sink_;
  const ConnectionId id_;
  const Address address_;
  const ResolvedAddress resolved_;
  const std::string server_key_;
  State state_ = State::kResting;
  TimePoint deadline_{};
  TimePoint begun_{};          // since when the newest sockets are there
  int attempts_ = 0;           // since the dial
  int failed_handshakes_ = 0;  // broken off by the other end for no reason that was told
  Token token_{};
  std::map<StrandId, std::unique_ptr<ZmqSocket>> strands_;
  std::unique_ptr<ZmqTraffic> traffic_;
};

}  // namespace troupe::runtime
