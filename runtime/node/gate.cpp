#include "runtime/node/gate.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "runtime/node/node_core.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

// A peer whose answer does not come, or whose connection breaks while it is made, is dialed again
// after this.
constexpr Duration kDialPause = std::chrono::milliseconds(100);

Error lost(std::string why) { return {ErrorKind::kLostPeers, std::move(why)}; }

}  // namespace

Gate::Gate(NodeCore& core, const Plan& plan, GateOptions options, Wire& wire,
           const WireTypes& types, const Clock& clock, const Log& log)
    : options_(std::move(options)),
      log_(log.named(options_.node)),
      parts_{core, wire, types, clock, log_, closing_},
      links_(options_.node, core, wire, log_),
      introducer_(plan, options_.node, *options_.keeper),
      peers_(options_, parts_, introducer_, links_),
      visitors_(options_, parts_, introducer_, peers_),
      liveness_(options_, clock.now()) {
  CHECK(options_.incarnation != 0, "incarnation 0 means none");
  CHECK(options_.dead_after > 2 * options_.heartbeat, "dead_after is over two heartbeats");
  CHECK(options_.peers_a_beat > 0, "the first node hears its peers");
  CHECK(introducer_.is_head() || !options_.head_address.empty(),
        "it is known where to dial the head");
}

void Gate::add_actor(const std::string& actor, const std::string& node) {
  if (const auto peer = peers_.find(node)) links_.add_actor(actor, *peer);
}

// Where a node stands among the peers does not change after the first turn.
void Gate::go_on_without(const std::string& node) {
  if (const auto peer = peers_.find(node)) {
    links_.wish({PeerWish::Kind::kGoOnWithout, *peer, {}});
  }
}

void Gate::await_another(const std::string& node, const std::string& name) {
  if (const auto peer = peers_.find(node)) links_.wish({PeerWish::Kind::kRenew, *peer, name});
}

void Gate::begin_close() {
  if (!closing_.exchange(true)) parts_.wire.wake();
}

void Gate::turn(TimePoint until) {
  until = std::min(until, next_due());
  liveness_.begin_turn(until);
  parts_.wire.poll(*this, until);
  {
    const std::scoped_lock lock(peers_mutex_);
    // Read before the rest: what actors posted until they ended is sent below.
    const bool closing = closing_.load();
    Posted posted = links_.take_posted();
    for (const PeerWish& wish : posted.wishes) {
      if (wish.kind == PeerWish::Kind::kMeet) peers_.meet(wish.peer);
    }
    for (Outgoing& outgoing : posted.messages) peers_.send(outgoing);
    for (const std::size_t peer : posted.accounts) peers_.touch(peer);
    // All that was said before to a process that is over has come back by now.
    for (const PeerWish& wish : posted.wishes) {
      if (wish.kind == PeerWish::Kind::kGoOnWithout) peers_.go_on_without(wish.peer);
      if (wish.kind == PeerWish::Kind::kRenew) peers_.renew(wish.peer, wish.renewed_as);
    }
    tend(parts_.clock.now());
    if (closing) tend_closing(parts_.clock.now());
  }
  dial_due();
}

// Names are looked up for as long as the system likes; no other thread shall wait for that.
void Gate::dial_due() {
  for (const std::size_t position : std::exchange(to_dial_, {})) {
    // Only this thread changes peers, so they can be read without the lock.
    Peer& peer = *peers_.all()[position];
    if (peer.over()) continue;
    const Result<ConnectionId> dialed = parts_.wire.dial(peer.address());
    const std::scoped_lock lock(peers_mutex_);
    peer.next_dial = parts_.clock.now() + kDialPause;
    if (dialed.ok()) {
      peers_.dials(position, *dialed);
    } else if (peer.state() == Peer::State::kAwaited) {
      // An address that has led there before may do so again: names go with the network they are
      // asked over.
      peers_.lose(position, dialed.error());
    }
  }
}

TimePoint Gate::next_due() const {
  if (closed()) return TimePoint::max();
  const std::scoped_lock lock(peers_mutex_);
  const TimePoint now = parts_.clock.now();
  const TimePoint visitors = visitors_.next_due(liveness_.patience_with_visitors(now));
  TimePoint due = std::min({visitors, look_due_, close_by_});
  // See due_to(), of all that is awaited.
  if (visitors != TimePoint::max()) {
    due = std::min(due, liveness_.last_turn() + options_.heartbeat);
  }
  return due;
}

// All that are up, or awaited with a deadline, are looked at every heartbeat: so a longer pause is
// this node's own sleep; see Liveness.
TimePoint Gate::due_to(const Peer& peer, TimePoint now) const {
  TimePoint due = now + options_.heartbeat;
  switch (peer.state()) {
    case Peer::State::kUp: {
      const Duration patience = patience_with(peer, now);
      due = std::min({due, peer.rhythm.next(), peer.rhythm.silent_from() + patience});
      if (peers_.may_ask_after(peer)) {
        due = std::min(due, peer.rhythm.silent_from() + liveness_.patience_until_asked(peer, now));
      }
      return due;
    }
    case Peer::State::kDown:
      due = std::min(due, peer.since() + patience_with(peer, now));
      break;
    case Peer::State::kAwaited:
      if (!peer.dialed()) return TimePoint::max();
      due = std::min(due, peer.since() + options_.dial_within);
      break;
    case Peer::State::kAway:
      if (!peer.dialed()) return TimePoint::max();
      due = std::min(due, peer.since() + options_.head_returns_within);
      break;
    case Peer::State::kGone:
    case Peer::State::kLost:
      return TimePoint::max();
  }
  if (peer.dialed() && !peer.connection) due = std::min(due, peer.next_dial);
  return due;
}

// The first node hears each of many peers seldom. Those that work with one hear it every heartbeat,
// and ask after it when they miss it.
Duration Gate::rhythm_with(const Peer& peer, TimePoint now) const {
  if (now < peer.watched_until) return options_.heartbeat;
  return rhythm_among(up_, options_.heartbeat, options_.peers_a_beat);
}

// Does what is due because time has passed, and what follows from what has happened.
void Gate::tend(TimePoint now) {
  const auto pause = liveness_.end_turn(now);
  if (pause) {
    // Things that have happened since this process woke are not put off.
    for (const std::size_t position : peers_.tended()) {
      peers_.all()[position]->excuse(*pause, now);
    }
    visitors_.excuse(*pause, now);
  }
  std::set<std::size_t> touched = peers_.take_touched();
  if (pause || now >= look_due_ || closing_.load()) {
    touched.insert(peers_.tended().begin(), peers_.tended().end());
    look_due_ = TimePoint::max();
    up_ =
        static_cast<std::size_t>(std::ranges::count_if(peers_.tended(), [&](std::size_t position) {
          return peers_.all()[position]->state() == Peer::State::kUp;
        }));
  }
  // One that is lost may take others with it.
  for (const std::size_t position : touched) look_at(position, now);
  visitors_.cut_off_silent(now, liveness_.patience_with_visitors(now));
  visitors_.tell_answers();
  if (graphs_asked_.exchange(false)) {
    for (const std::size_t position : peers_.tended()) {
      Peer& peer = *peers_.all()[position];
      peer.graph.reset();
      if (peer.state() == Peer::State::kUp) {
        parts_.wire.send(*peer.connection, Lane::kControl, pack(GraphRequest{}));
      }
    }
  }
  if (closing_.load()) return;
  for (const std::size_t position : introducer_.take_due()) {
    const Peer& peer = *peers_.all()[position];
    if (peer.state() != Peer::State::kUp) continue;
    if (const auto directory = introducer_.directory_for(position)) {
      parts_.wire.send(*peer.connection, Lane::kControl, pack(*directory));
    }
  }
}

void Gate::look_at(std::size_t position, TimePoint now) {
  tend_peer(position, now);
  look_due_ = std::min(look_due_, due_to(*peers_.all()[position], now));
}

void Gate::ask_after(std::size_t position, TimePoint now) {
  const Peer& peer = *peers_.all()[position];
  if (!peers_.may_ask_after(peer)) return;
  peers_.ask_after(position, 2 * liveness_.patience_until_asked(peer, now));
}

void Gate::tend_alive(std::size_t position, TimePoint now) {
  Peer& peer = *peers_.all()[position];
  const Duration silence = now - peer.rhythm.silent_from();
  if (silence >= liveness_.patience_until_asked(peer, now)) ask_after(position, now);
  if (silence >= patience_with(peer, now)) {
    return peers_.give_up(
        position,
        lost(fmt::format("{} has not been heard of for {:.1f} s: its process is stopped or "
                         "overloaded, its machine or the network is down; if it was only slow, "
                         "raise cluster.failure.dead_after ({:.1f} s)",
                         peer.node(), seconds(now - peer.rhythm.last_heard()),
                         seconds(options_.dead_after))));
  }
  // Where many have long rhythms, some speak a little early, together with others.
  const Duration early = peer.rhythm.is_longer() ? options_.heartbeat / 8 : Duration(0);
  if (now + early >= peer.rhythm.next()) {
    if (introducer_.is_head()) peer.rhythm.change(rhythm_with(peer, now), now);
    peers_.beat(position, liveness_.load(now));
  }
  if (auto credits = links_.account_for(position)) {
    parts_.wire.send(*peer.connection, Lane::kControl,
                     pack(Account{peer.received(), std::move(*credits)}));
  }
}

// A peer that is up is measured by when it was last heard, any other one by how long it has been in
// its state. While it is up or down another process may come in the head's place, so give_up()
// decides whether it is lost or away. In any other state it is lost.
void Gate::tend_peer(std::size_t position, TimePoint now) {
  Peer& peer = *peers_.all()[position];
  switch (peer.state()) {
    case Peer::State::kGone:
    case Peer::State::kLost:
      return;
    case Peer::State::kUp:
      return tend_alive(position, now);
    case Peer::State::kDown:
      if (peer.is_done_with) {
        return peers_.forget(position,
                             lost(fmt::format("{} is lost: {}", peer.node(), peer.end().message)));
      }
      // What has closed the connection here may keep silent there.
      ask_after(position, now);
      if (now - peer.since() >= patience_with(peer, now)) {
        return peers_.give_up(
            position,
            lost(fmt::format("{} is lost: {}, and no new connection came within {:.1f} s "
                             "(cluster.failure.dead_after)",
                             peer.node(), peer.end().message, seconds(now - peer.since()))));
      }
      break;
    case Peer::State::kAway:
      if (now - peer.since() >= options_.head_returns_within) {
        return peers_.lose(
            position,
            lost(fmt::format("{}, and no other process took its place within {:.0f} s",
                             peer.end().message, seconds(options_.head_returns_within))),
            true);
      }
      break;
    case Peer::State::kAwaited:
      // A peer that dials this node has no deadline here: it may come at any time.
      if (peer.dialed() && now - peer.since() >= options_.dial_within / 2) {
        ask_after(position, now);
      }
      if (peer.dialed() && now - peer.since() >= options_.dial_within) {
        return peers_.lose(
            position,
            lost(fmt::format(
                "{} does not answer at {} (tried for {:.0f} s); is it running, and can this host "
                "reach it?{}",
                peer.node(), without_key(peer.address()), seconds(options_.dial_within),
                introducer_.is_neighbour(position) ? " If nobody can, start it with --listen none."
                                                   : "")));
      }
      break;
  }
  // turn() dials it when the lock is let go.
  if (peer.dialed() && !peer.connection && now >= peer.next_dial) to_dial_.push_back(position);
}

// True also for a peer that hears no goodbye: one that is over, a head that is away, and one that
// has never come and for which nothing is kept.
bool Gate::say_goodbye(std::size_t position) {
  Peer& peer = *peers_.all()[position];
  if (peer.over() || peer.state() == Peer::State::kAway) return true;
  if (peer.state() == Peer::State::kAwaited && peer.all_acknowledged()) return true;
  if (peer.state() != Peer::State::kUp || !peer.ready || !peer.all_acknowledged()) return false;
  parts_.wire.send(*peer.connection, Lane::kControl, pack(Bye{}));
  peers_.leave(position);
  return true;
}

// The head hears it last: nobody waits any more for a node that it knows to have ended.
bool Gate::say_goodbyes() {
  const auto head = peers_.find(introducer_.head());
  bool done = true;
  for (std::size_t i = 0; i < peers_.all().size(); ++i) {
    if (head != i && !say_goodbye(i)) done = false;
  }
  return done && (!head || say_goodbye(*head));
}

// Every turn tries each goodbye again, until all are said or close_by_ is over. The scheduler is
// woken at the end, because the node's end waits for closed().
void Gate::tend_closing(TimePoint now) {
  if (close_by_ == TimePoint::max()) close_by_ = now + options_.close_within;
  const bool done = say_goodbyes();
  if (!done && now < close_by_) return;
  // A peer that keeps this node waiting is not the head's fault.
  const auto head = peers_.find(introducer_.head());
  if (!done && head) say_goodbye(*head);
  for (std::size_t i = 0; i < peers_.all().size(); ++i) {
    const Peer& peer = *peers_.all()[i];
    if (peer.over()) continue;
    if (!peer.all_acknowledged()) {
      log_.warning(
          fmt::format("{} has not acknowledged all that was sent to it within {:.1f} s of "
                      "this node's end; it may never have arrived",
                      peer.node(), seconds(options_.close_within)));
    }
    peers_.leave(i);
  }
  visitors_.send_away();
  close_by_ = TimePoint::max();
  closed_.store(true);
  parts_.core.scheduler().wake();
}

void Gate::connected(ConnectionId connection, const ConnectionInfo& info) {
  const std::scoped_lock lock(peers_mutex_);
  if (const auto position = peers_.find(connection)) {
    peers_.touch(*position);
    peers_.greet(*position);
  } else {
    visitors_.came(connection, info);
  }
}

void Gate::disconnected(ConnectionId connection, const Error& why) {
  const std::scoped_lock lock(peers_mutex_);
  visitors_.left(connection);
  if (const auto position = peers_.find(connection)) {
    peers_.touch(*position);
    peers_.disconnected(*position, why);
  }
}

void Gate::arrived(ConnectionId connection, Lane lane, Packet packet) {
  const std::scoped_lock lock(peers_mutex_);
  const auto position = peers_.find(connection);
  if (!position && !visitors_.has(connection)) return;  // cut off a moment ago
  const TimePoint now = parts_.clock.now();
  Result<AnyPacket> read = unpack(packet, parts_.types);
  if (position) peers_.touch(*position);
  if (read.ok() && position) {
    liveness_.hear(*peers_.all()[*position], now);
    peers_.take(*position, lane, *read);
  } else if (read.ok()) {
    visitors_.introduce(connection, *read, liveness_.just_woken(now));
  } else {
    const std::string what = fmt::format("sent what cannot be read ({})", read.error().message);
    if (position) {
      const std::string& node = peers_.all()[*position]->node();
      peers_.lose(*position, lost(fmt::format("{} is lost: it {}", node, what)));
    } else {
      visitors_.cut_off(connection, what);
    }
  }
}

void Gate::arriving(ConnectionId connection) {
  const std::scoped_lock lock(peers_mutex_);
  if (const auto position = peers_.find(connection)) {
    liveness_.hear(*peers_.all()[*position], parts_.clock.now());
    peers_.touch(*position);
  }
}

// Peers that are not up are not waited for. While a request has not left, no answer is complete.
Gate::Graphs Gate::graphs() const {
  const std::scoped_lock lock(peers_mutex_);
  Graphs result;
  result.complete = !graphs_asked_.load();
  for (const std::size_t position : peers_.tended()) {
    const Peer& peer = *peers_.all()[position];
    if (peer.graph) {
      result.graphs.push_back(*peer.graph);
    } else if (peer.state() == Peer::State::kUp) {
      result.complete = false;
    }
  }
  return result;
}

std::vector<PeerStats> Gate::peer_stats() const {
  const std::scoped_lock lock(peers_mutex_);
  std::vector<PeerStats> all;
  for (const auto& peer : peers_.all()) all.push_back(peer->stats());
  return all;
}

}  // namespace troupe::runtime
