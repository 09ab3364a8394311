#pragma once

// The dialing end of one connection: a DEALER per strand. Until the connection is open it is tried
// again and again, each time with new sockets and a new token, since what a broken attempt left
// behind at the listener must not meet the next one. Once open it is never made again from here.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/resolve.h"
#include "runtime/transport/zmq_socket.h"
#include "runtime/transport/zmq_traffic.h"

namespace troupe::runtime {

class ZmqDialer {
 public:
  // `server_key` is "" for a connection without encryption. The references outlive the dialer.
  ZmqDialer(ZmqContext& context, const ZmqWireOptions& options, ZmqSink& sink, ConnectionId id,
            Address address, ResolvedAddress resolved, std::string server_key);
  // As part().
  ~ZmqDialer();
  ZmqDialer(const ZmqDialer&) = delete;
  ZmqDialer& operator=(const ZmqDialer&) = delete;

  void add_to(std::vector<ZmqSocket*>& sockets);
  void serve(TimePoint now);
  TimePoint next_deadline() const;
  // The sink was told of the end; nothing follows.
  bool ended() const { return state_ == State::kEnded; }

  // Says goodbye if it is open, once. After it only drop_if_lost() may be called.
  void part();
  // Spares the library the wait until it gives up on a peer that is gone.
  void drop_if_lost();

  // Ignored until the connection is open.
  void send(Lane lane, const Packet& packet);

 private:
  enum class State : std::uint8_t {
    kResting,    // until deadline_, then a new attempt
    kAttaching,  // waits for the control socket, and then for the welcome
    kJoining,    // waits for the other sockets, and then for the open
    kOpen,
    kEnded,
    kParted,  // by this end
  };
  using StrandId = std::pair<Lane, int>;

  void begin(TimePoint now);
  bool add_strand(StrandId id, const std::string& endpoint);
  void rest(TimePoint now);
  void end(std::string why);
  bool read_events(StrandId id, ZmqSocket& socket, TimePoint now);
  bool strand_failed(StrandId id, ZmqEvent::What what, TimePoint now);
  void attach(StrandId id);
  void read_control(TimePoint now);
  void take_answer(std::span<const std::byte> frame, TimePoint now);
  void join(const Whereabouts& welcome, TimePoint now);
  void open();
  bool read_strand(StrandId id, int most, TimePoint now);
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
  int attempts_ = 0;           // since the dial
  int failed_handshakes_ = 0;  // one after the other, for no reason that was told
  Token token_{};
  std::map<StrandId, std::unique_ptr<ZmqSocket>> strands_;
  std::unique_ptr<ZmqTraffic> traffic_;
};

}  // namespace troupe::runtime
