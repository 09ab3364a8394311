#pragma once

// The listening end: three ROUTERs, and who speaks through them. Who has not attached is nobody;
// what nobody sends is dropped and counted.
//
// Monitors tell of lost connections by descriptor. A message tells its descriptor too, so an attach
// names the strand of a descriptor; what the monitor knew before is read first, since a descriptor
// may have belonged to somebody else.
//
// Who has attached, and opened, may break a rule once: it is told so and forgotten. Those who never
// get that far are forgotten after attach_within, and no more than 4096 are remembered at a time.

#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/zmq_socket.h"
#include "runtime/transport/zmq_traffic.h"

namespace troupe::runtime {

// The wire's thread.
class ZmqListener {
 public:
  // Errors (kUsage) name the address and what to do; or as ZmqSocket::open. `context`, `options`
  // and `sink` outlive the listener. Asks the system's resolver, which may take seconds.
  static Result<std::unique_ptr<ZmqListener>> open(ZmqContext& context,
                                                   const ZmqWireOptions& options, ZmqSink& sink);
  // Says goodbye to everybody, which the sockets' linger gives time to arrive.
  ~ZmqListener();
  ZmqListener(const ZmqListener&) = delete;
  ZmqListener& operator=(const ZmqListener&) = delete;

  // With the port that was taken, as others can dial it.
  const std::string& address() const { return address_; }

  // Appends those that are to be waited for, the listener's own.
  void add_to(std::vector<ZmqSocket*>& sockets);
  // Reads what is there, control before data before metrics, some of each.
  void serve(TimePoint now);
  // When serve() is due though nothing comes; max(): never.
  TimePoint next_deadline() const;

  // As Wire has them. False: the connection is not one of this listener's.
  bool send(ConnectionId connection, Lane lane, const Packet& packet);
  bool close(ConnectionId connection);

 private:
  // One peer, from its attach on control; it is open, and known to the sink, when all its strands
  // have attached and it is ready.
  struct Peer {
    ConnectionId id;  // 0 until it is open
    ConnectionInfo info;
    int stripes = 1;
    bool ready = false;
    std::set<std::pair<Lane, int>> attached;
    TimePoint deadline{};  // for opening, and for the last goodbyes
    std::unique_ptr<ZmqTraffic> traffic;
  };
  // The socket of a lane.
  struct Router {
    std::unique_ptr<ZmqSocket> socket;
    std::map<int, StrandName> strands;  // who attached, by descriptor
  };
  using Peers = std::map<Token, Peer>;

  ZmqListener(const ZmqWireOptions& options, ZmqSink& sink) : options_(options), sink_(sink) {}
  Result<void> bind(ZmqContext& context);
  Router& router(Lane lane) { return routers_[static_cast<std::size_t>(lane)]; }
  // Notes in lost_ whose connection has ended.
  void read_events(Router& router);
  // False: there is none.
  bool read_message(Lane lane, TimePoint now);
  void read_up_to(Lane lane, int most, TimePoint now);
  // The first message of a strand. What is not an attach is dropped and counted.
  void take_attach(const StrandName& name, std::span<const std::byte> frame, TimePoint now);
  // The strand's connection is the one with that descriptor from now on.
  void note_descriptor(const StrandName& name, int descriptor);
  void welcome(const StrandName& name, const Attach& attach, const ZmqOrigin& origin,
               TimePoint now);
  // What those say that have attached: before the connection is open, and then.
  void take_of_peer(Peers::iterator peer, const StrandName& name, std::span<Buffer> frames,
                    TimePoint now);
  void take_of_unopened(Peers::iterator peer, Lane lane, std::span<const Buffer> frames);
  void open_if_complete(Peers::iterator peer);
  // Says why; ending, where there is something to end, is another matter.
  void refuse(const StrandName& name, std::string_view why);
  // The sink is told if it knows the peer. Sockets that are still there belong to nobody then.
  void end(Peers::iterator peer, std::string why);
  // Those in lost_, after what arrived of them.
  void end_lost(TimePoint now);
  // Those that took too long to open, or to say all their goodbyes.
  void end_late(TimePoint now);
  Peers::iterator find(ConnectionId connection);
  // To the strands of that peer. One that is gone already is noted in lost_.
  ZmqTraffic::Out out_of(const Token& token);

  const ZmqWireOptions& options_;
  ZmqSink& sink_;
  std::string address_;
  std::array<Router, kLanes> routers_;
  std::uint16_t data_port_ = 0;
  std::uint16_t metrics_port_ = 0;
  Peers peers_;
  std::map<ConnectionId, Token> tokens_;  // of open peers
  std::vector<StrandName> lost_;
  std::vector<Buffer> frames_;  // of the message that is being taken
};

}  // namespace troupe::runtime
