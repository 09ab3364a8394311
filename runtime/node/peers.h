#pragma once

// The other nodes, and what is between each of them and this one: how they introduce themselves,
// what is sent and received, and how they part. peer.h has the states.
//
// In the place of the head another process may come (handshake.h). Until it does the head is away:
// what is said to it comes back; nodes that have met go on without it, and others cannot meet. In
// the place of another peer that is over, another process may come when the head's root actor says
// so (renew()). It has a name of its own, so nothing that names the earlier one means it.
//
// What peers send is not trusted: a peer that breaks a rule loses its connection, or its place in
// the run, and nothing else happens.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/node/gate_options.h"
#include "runtime/node/handshake.h"
#include "runtime/node/introducer.h"
#include "runtime/node/peer.h"
#include "runtime/node/remote_links.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/wire_types.h"

namespace troupe::runtime {

class NodeCore;

// What peers and their gate work with. All outlive them.
struct GateParts {
  NodeCore& core;
  Wire& wire;
  const WireTypes& types;
  const Clock& clock;
  const Log& log;
  const std::atomic<bool>& closing;  // see Handshake
};

// Tells whoever is at the other end why it is refused, notes it in the log, and closes.
void refuse(const GateParts& parts, ConnectionId connection, const std::string& who, Error error);

// A peer is meant by its position, which it keeps. The gate's thread.
class Peers {
 public:
  // All outlive it.
  Peers(const GateOptions& options, const GateParts& parts, Introducer& introducer,
        RemoteLinks& links)
      : options_(options),
        parts_(parts),
        introducer_(introducer),
        links_(links),
        handshake_(options, parts.wire, introducer, parts.closing) {}

  // Before the first turn. Adds the node when it is new.
  std::size_t add(const std::string& node);
  const std::vector<std::unique_ptr<Peer>>& all() const { return peers_; }
  // The positions of those that are up, down or away, or that this node dials. All others are only
  // heard of by what they say: a turn costs no more for a plan that has more of them. Ascending.
  const std::vector<std::size_t>& tended() const { return tended_; }
  // Something has happened to the peer: what is due to it may have changed.
  void touch(std::size_t position) { touched_.insert(position); }
  // Those of which this is so since the last call. Ascending.
  std::set<std::size_t> take_touched() { return std::exchange(touched_, {}); }
  // Any thread. The progress that all have told of, together.
  std::int64_t progress() const { return progress_.load(); }
  // See Introducer::find().
  std::optional<std::size_t> find(const std::string& node) const { return introducer_.find(node); }
  std::optional<std::size_t> find(ConnectionId connection) const;

  // This node begins to dial the peer by that connection.
  void dials(std::size_t position, ConnectionId connection);
  // The connection by which this node dials the peer is made: it introduces itself.
  void greet(std::size_t position);
  // A process introduces itself as a peer. `just_woken`: this one was asleep until a moment ago.
  void answer(ConnectionId connection, const ConnectionInfo& info, const Hello& hello,
              bool just_woken);
  void disconnected(std::size_t position, const Error& why);
  // A packet of the peer.
  void take(std::size_t position, Lane lane, AnyPacket& packet);
  // A message of an actor here for the peer, or one that goes back to it. The first one for a
  // neighbour makes the two meet, and waits until they have.
  void send(Outgoing& outgoing);
  // An actor here will have something to say to the peer: the two meet.
  void meet(std::size_t position);

  // The others go on without the peer.
  void go_on_without(std::size_t position);
  // Another process may come in the peer's place, under that name. One that is not over is lost.
  void renew(std::size_t position, const std::string& name);
  // The peer is over, with an error or as it should be.
  void lose(std::size_t position, Error error, bool fell_silent = false);
  // The same, without a warning.
  void forget(std::size_t position, Error error, bool fell_silent = false);
  void leave(std::size_t position);
  // Gives the peer a sign of life, which at the head says how often the two do from now on.
  void beat(std::size_t position, double load);
  // Whether the head is to be told when this node misses the peer: it may hear it too seldom to
  // notice by itself in time, and was not told yet.
  bool may_ask_after(const Peer& peer) const;
  // Tells it, and with how much patience the peer is heard here.
  void ask_after(std::size_t position, Duration patience);
  // Nothing is heard of the peer any more: it is lost, or away if another process may come.
  void give_up(std::size_t position, Error error);

 private:
  void take_welcome(std::size_t position, const Welcome& welcome);
  void come_up(std::size_t position, ConnectionId connection, const ConnectionInfo& info,
               const Introduction& other);
  // Sends again what the other end does not have.
  void become_ready(Peer& peer);
  // What rule the packet breaks; "": none. take() has seen to it that the peer is up.
  std::string fault_of(std::size_t position, Lane lane, AnyPacket& packet);
  std::string receive_envelope(std::size_t position, Lane lane, Envelope& envelope);
  std::string take_heartbeat(std::size_t position, const Heartbeat& heartbeat);
  // The head hears all peers of that machine at the shortest rhythm for a while, and is as patient.
  void watch(std::size_t position, Duration patience);
  void note_progress(Peer& peer, std::uint64_t progress);
  // Tells the head of all that this node wants to meet.
  void tell_wanted(const Peer& head);
  std::string take_directory(std::size_t position, const Directory& directory);
  // Closes the connection to the peer, if there is one.
  void hang_up(const Peer& peer);
  // Forgets all that was between the process that was the peer and this one.
  void let_go(std::size_t position, Error error);
  void return_kept(std::size_t position);
  void leave_awaited();
  void finish(std::size_t position, Peer::State state, Error error);
  void begin_to_tend(std::size_t position);

  const GateOptions& options_;
  const GateParts& parts_;
  Introducer& introducer_;
  RemoteLinks& links_;
  const Handshake handshake_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<std::string, std::size_t> positions_;
  std::map<ConnectionId, std::size_t> by_connection_;
  std::vector<std::size_t> tended_;  // ascending
  std::set<std::size_t> touched_;
  std::atomic<std::int64_t> progress_{0};
};

}  // namespace troupe::runtime
