#pragma once

// The listening end: three ROUTERs, and who speaks through them. Who has not attached is nobody;
// what nobody sends is dropped and counted.
//
// Monitors tell of lost connections by descriptor. A message tells its descriptor too, so an attach
// names the strand of a descriptor; what the monitor knew before is read first, since a descriptor
// may have belonged to somebody else.

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

class ZmqListener {
 public:
  // Errors (kUsage) name the address and what to do. `options` and `sink` outlive the listener.
  static Result<std::unique_ptr<ZmqListener>> open(ZmqContext& context,
                                                   const ZmqWireOptions& options, ZmqSink& sink);
  // Says goodbye to everybody.
  ~ZmqListener();
  ZmqListener(const ZmqListener&) = delete;
  ZmqListener& operator=(const ZmqListener&) = delete;

  const std::string& address() const { return address_; }

  void add_to(std::vector<ZmqSocket*>& sockets);
  // Reads what is there, control before data before metrics, some of each.
  void serve(TimePoint now);
  // When serve() is due though nothing comes.
  TimePoint next_deadline() const;

  // False: the connection is not one of this listener's.
  bool send(ConnectionId connection, Lane lane, const Packet& packet);
  bool close(ConnectionId connection);

 private:
  // One peer, from its attach on control.
  struct Peer {
    ConnectionId id;  // 0 until it is open
    ConnectionInfo info;
    int stripes = 1;
    bool ready = false;
    std::set<std::pair<Lane, int>> attached;
    TimePoint deadline{};  // for opening, and for the last goodbyes
    std::unique_ptr<ZmqTraffic> traffic;
  };
  struct Router {
    std::unique_ptr<ZmqSocket> socket;
    std::map<int, StrandName> strands;  // who attached, by descriptor
  };
  using Peers = std::map<Token, Peer>;

  ZmqListener(const ZmqWireOptions& options, ZmqSink& sink) : options_(options), sink_(sink) {}
  Result<void> bind(ZmqContext& context);
  Router& router(Lane lane) { return routers_[static_cast<std::size_t>(lane)]; }
  void read_events(Router& router);
  bool read_message(Lane lane, TimePoint now);
  void read_up_to(Lane lane, int most, TimePoint now);
  void take_attach(const StrandName& name, std::span<const std::byte> frame, TimePoint now);
  void note_descriptor(const StrandName& name, int descriptor);
  void welcome(const StrandName& name, const Attach& attach, const ZmqOrigin& origin,
               TimePoint now);
  void take_of_peer(Peers::iterator peer, const StrandName& name, std::span<Buffer> frames,
                    TimePoint now);
  void open_if_complete(Peers::iterator peer);
  void refuse(const StrandName& name, std::string_view why);
  void end(Peers::iterator peer, std::string why);
  void end_lost(TimePoint now);
  void end_late(TimePoint now);
  Peers::iterator find(ConnectionId connection);
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
