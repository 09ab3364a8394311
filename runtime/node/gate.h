#pragma once

// The node's way to the other nodes. The gate drives the wire, and does what is due because time
// has passed. Peers has what is between this node and each other one, Introducer how nodes find
// each other, RemoteLinks the messages of actors, Visitors the connections that are no peer's.
//
// One thread drives it (turn()); actors' threads post to links(). It is the node's own; see node.h.
//
// Failure is noticed by three signals: a closed connection that does not come back, silence
// (liveness.h), and a peer's own word. A lost peer is lost for good: what was kept for it comes
// back undeliverable, what it held gives its credit back, and the node's root actor is told
// PeerLost.
//
// The end. A Bye is said when everything that was sent is acknowledged. It is not acknowledged
// itself, for nothing hangs on it: if the connection breaks under it, the other end has all that
// this one ever sent, and what it still sends comes back to its senders either way. It only learns
// dead_after later that this node is gone, as PeerLost in place of PeerLeft.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/node/gate_options.h"
#include "runtime/node/introducer.h"
#include "runtime/node/liveness.h"
#include "runtime/node/peers.h"
#include "runtime/node/remote_links.h"
#include "runtime/node/visitors.h"
#include "runtime/plan.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/wire_types.h"

namespace troupe::runtime {

class NodeCore;

// Nothing here throws.
class Gate final : public WireEvents {
 public:
  // `plan` is that of all nodes. The others outlive the gate; nothing is dialed before the first
  // turn(). CHECKs an incarnation, that dead_after is over two heartbeats, and that it is known
  // where to dial the head.
  Gate(NodeCore& core, const Plan& plan, GateOptions options, Wire& wire, const WireTypes& types,
       const Clock& clock, const Log& log);

  // Before the first turn(). The node's position, at which it is added when it is new.
  std::size_t add_peer(const std::string& node) { return peers_.add(node); }
  // An actor elsewhere. Nothing happens when its node is no peer.
  void add_actor(const std::string& actor, const std::string& node);
  // See RemoteLinks for what any thread may call.
  RemoteLinks& links() { return links_; }
  const RemoteLinks& links() const { return links_; }

  // The driving thread, until closed(): one round of what has come and what is to go, waiting for
  // it until `until` at most. Dialing a name for the first time may take as long as the system's
  // resolver likes: other threads do not wait for that, but heartbeats do. Only the head may be
  // given as a name, and nobody else has been met when it is dialed.
  void turn(TimePoint until);
  // Any thread. When turn() has something to do at the latest; max() when it is closed.
  TimePoint next_due() const;
  // Any thread. See Context::go_on_without().
  void go_on_without(const std::string& node);
  // Any thread. See Context::await_another(). Messages that were posted before come back.
  void await_another(const std::string& node, const std::string& name);
  // Any thread. The node has ended: says the rest, waits for its acknowledgement, says goodbye.
  void begin_close();
  bool closed() const { return closed_.load(); }

  // Any thread. What peers have last told of their progress, all together.
  std::int64_t peers_progress() const { return peers_.progress(); }
  // Any thread. Asks all peers for their wait-for graphs anew.
  void request_graphs() { graphs_asked_.store(true), parts_.wire.wake(); }
  // Any thread. Those that have come since; `complete`: from every peer that is up.
  struct Graphs {
    std::vector<WaitGraph> graphs;
    bool complete = false;
  };
  Graphs graphs() const;
  // Any thread, also after the end.
  std::vector<PeerStats> peer_stats() const;

  // See WireEvents; called by the wire within turn().
  void connected(ConnectionId connection, const ConnectionInfo& info) override;
  void arrived(ConnectionId connection, Lane lane, Packet packet) override;
  void arriving(ConnectionId connection) override;
  void disconnected(ConnectionId connection, const Error& why) override;

 private:
  void dial_due();
  void tend(TimePoint now);
  // Does what is due to the peer, and notes when more will be.
  void look_at(std::size_t position, TimePoint now);
  void tend_peer(std::size_t position, TimePoint now);
  // Tells the head that this node misses the peer, if it has not yet.
  void ask_after(std::size_t position, TimePoint now);
  // A peer that is up.
  void tend_alive(std::size_t position, TimePoint now);
  TimePoint due_to(const Peer& peer, TimePoint now) const;
  // At the plan's first node: how often it and a peer that is up are to give signs of life.
  Duration rhythm_with(const Peer& peer, TimePoint now) const;
  Duration patience_with(const Peer& peer, TimePoint now) const {
    return liveness_.patience_with(peer, closing_.load(), now);
  }
  // The node ends.
  void tend_closing(TimePoint now);
  // False: there is still something to wait for.
  bool say_goodbye(std::size_t position);
  bool say_goodbyes();

  const GateOptions options_;
  const Log log_;
  const GateParts parts_;

  // The driving thread's; read by others under peers_mutex_, which it holds while it changes them.
  mutable std::mutex peers_mutex_;
  RemoteLinks links_;  // guards itself
  Introducer introducer_;
  std::atomic<bool> closing_{false};
  Peers peers_;
  Visitors visitors_;
  Liveness liveness_;
  std::vector<std::size_t> to_dial_;
  // When all peers are to be looked at again, and not only those to which something has happened.
  TimePoint look_due_{0};
  std::size_t up_ = 0;  // peers, when all were last looked at

  std::atomic<bool> graphs_asked_{false};
  std::atomic<bool> closed_{false};
  TimePoint close_by_ = TimePoint::max();
};

}  // namespace troupe::runtime
