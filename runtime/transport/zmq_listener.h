#pragma once

// The listening end: a ROUTER for control and one for data, and the connections through them. A
// message that belongs to no connection is dropped and counted.
//
// Monitors tell of lost sockets by descriptor. A message tells its descriptor too, so an attach
// names the socket behind a descriptor. What the monitor knew before is read first, since the
// descriptor may have belonged to another peer.
//
// A peer that breaks a rule is told so and forgotten. A connection that does not open is forgotten
// after attach_within, and no more than 4096 of these are remembered at a time.

#include <array>
#include <map>
#include <memory>
#include <optional>
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
  // Says goodbye to every peer; the sockets' linger gives that time to arrive.
  ~ZmqListener();
  ZmqListener(const ZmqListener&) = delete;
  ZmqListener& operator=(const ZmqListener&) = delete;

  // With the port that was taken, as others can dial it.
  const std::string& address() const { return address_; }

  // Appends the listener's sockets, which the wire waits for.
  void add_to(std::vector<ZmqSocket*>& sockets);
  // Reads what is there, control before data, some of each.
  void serve(TimePoint now);
  // When serve() is due though nothing comes; max(): never.
  TimePoint next_deadline() const;

  // As Wire has them. False: the connection is not one of this listener's.
  bool send(ConnectionId connection, Lane lane, const Packet& packet);
  bool close(ConnectionId connection);

 private:
  // One connection. It is open, and known to the sink, when both sockets have attached.
  struct Connection {
    ConnectionId id;  // 0 until it is open
    ConnectionInfo info;
    std::array<bool, kSockets> attached{};
    SharedOffer offer;  // of the peer
    UcxOffer ucx;       // the same
    TimePoint open_by{};
    ZmqTraffic traffic;
    // For opening, and then for the second goodbye.
    TimePoint deadline() const { return id.number == 0 ? open_by : traffic.parting_by(); }
  };
  struct Router {
    std::unique_ptr<ZmqSocket> socket;
    std::map<int, Route> routes;  // attached sockets, by descriptor
  };
  using Connections = std::map<Token, Connection>;

  ZmqListener(const ZmqWireOptions& options, ZmqSink& sink) : options_(options), sink_(sink) {}
  Router& router(SocketId id) { return routers_[static_cast<std::size_t>(id)]; }
  // Notes in lost_ the sockets whose connection has ended.
  void read_events(Router& router);
  // False: there is none.
  bool read_message(SocketId id, TimePoint now);
  void read_up_to(SocketId id, int most, TimePoint now);
  // The first message of a socket. Anything else than an attach is dropped and counted.
  void take_attach(const Route& route, std::span<const std::byte> frame, TimePoint now);
  // The socket's connection is the one with that descriptor from now on.
  void note_descriptor(const Route& route, int descriptor);
  void open_peer(Connections::iterator peer);
  // A message of an attached socket.
  void take_of_peer(Connections::iterator peer, SocketId id, std::span<Buffer> frames,
                    TimePoint now);
  // What has come over UCX.
  void serve_ucx(TimePoint now);
  void end_as(Connections::iterator peer, const ZmqTraffic::End& ended);
  void refuse(const Route& route, std::string_view why);
  // The sink is told if it knows the peer.
  void end(Connections::iterator peer, std::string why);
  // Ends the connections in lost_, after what arrived over them.
  void end_lost(TimePoint now);
  // Ends those that took too long to open, or to say the second goodbye.
  void end_late(TimePoint now);
  Connections::iterator find(ConnectionId connection);
  // To the sockets of that peer. One that is gone already is noted in lost_.
  ZmqTraffic::Out out_of(const Token& token);

  const ZmqWireOptions& options_;
  ZmqSink& sink_;
  std::string address_;
  std::array<Router, kSockets> routers_;
  Connections connections_;
  std::set<Token> pending_;  // those with a deadline, and maybe some that have none any more
  std::map<ConnectionId, Token> tokens_;  // of open peers
  std::vector<Route> lost_;
  std::vector<Buffer> frames_;  // of the message that is being taken
};

}  // namespace troupe::runtime
