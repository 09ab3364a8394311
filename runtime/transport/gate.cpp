#include "runtime/transport/gate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/secret.h"
#include "runtime/node_core.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

// A peer whose answer does not come, or whose connection breaks while it is made, is dialed again
// after this.
constexpr Duration kDialPause = std::chrono::milliseconds(100);

GateOptions with_defaults(GateOptions options) {
  if (!options.draw)
    options.draw = [](const std::string&, const std::string&) { return secret_number(); };
  return options;
}

}  // namespace

Gate::Gate(NodeCore& core, const Plan& plan, GateOptions options, Wire& wire,
           const WireTypes& types, const Clock& clock, const Log& log)
    : core_(core),
      options_(with_defaults(std::move(options))),
      wire_(wire),
      types_(types),
      clock_(clock),
      log_(log.named(options_.node)),
      fellowship_(plan),
      drain_answers_(std::make_shared<DrainAnswers>([&wire] { wire.wake(); })),
      last_turn_(clock.now()) {
  CHECK(options_.incarnation != 0, "incarnation 0 means none");
  CHECK(options_.dead_after > 2 * options_.heartbeat, "dead_after is over two heartbeats");
  CHECK(is_first() || !options_.first_address.empty(), "it is known where to dial the first node");
}

Gate::~Gate() { drain_answers_->close(); }

void Gate::add_peer(const std::string& node) { (void)peer_of(node); }

std::size_t Gate::peer_of(const std::string& node) {
  const auto [found, added] = positions_.emplace(node, peers_.size());
  if (added) {
    const bool first = node == fellowship_.first();
    peers_.push_back(std::make_unique<Peer>(node, first ? options_.first_address : std::string(),
                                            clock_.now(), Patience(options_.dead_after)));
    peers_.back()->in_directory = !first && !fellowship_.fellows_of(node).empty();
    outsiders_.push_back(
        std::make_unique<RemoteOrigin>(found->second, std::string(kOutsideName), "control"));
    accounts_due_.push_back(std::make_unique<std::atomic<bool>>(false));
    here_.push_back(std::make_unique<std::atomic<bool>>(false));
  }
  return found->second;
}

Outlet& Gate::add_outlet(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port,
                         const std::string& to_node) {
  auto& outlet = outlets_[link];
  outlet = std::make_unique<RemoteOutlet>(*this, link, peer_of(to_node), plan, from, port);
  return *outlet;
}

void Gate::add_inlet(std::uint32_t link, const LinkPlan& plan, const std::string& from_node,
                     Cell& to) {
  inlets_[link] = std::make_unique<RemoteInlet>(*this, link, peer_of(from_node), plan, to);
}

void Gate::add_actor(const std::string& actor, const std::string& node) {
  const auto peer = positions_.find(node);
  if (peer == positions_.end()) return;
  actors_.emplace(actor, peer->second);
  senders_.emplace(actor, std::make_unique<RemoteOrigin>(peer->second, actor, "control"));
}

void Gate::begin_close() {
  if (!closing_.exchange(true)) wake();
}

void Gate::turn(TimePoint until) {
  turn_until_ = std::min(until, next_due());
  wire_.poll(*this, turn_until_);
  {
    const std::scoped_lock lock(peers_mutex_);
    // Asked before: what actors posted until they ended is taken below.
    const bool closing = closing_.load();
    take_outgoing();
    tend(clock_.now());
    if (is_first() && !closing) tend_directory();
    if (closing) tend_closing(clock_.now());
  }
  dial_due();
}

// Names are looked up for as long as the system likes; no other thread shall wait for that.
void Gate::dial_due() {
  for (const std::size_t position : std::exchange(to_dial_, {})) {
    // Only this thread changes peers, so they can be read without the lock.
    Peer& peer = *peers_[position];
    if (peer.over()) continue;
    const Result<ConnectionId> dialed = wire_.dial(peer.address());
    const std::scoped_lock lock(peers_mutex_);
    peer.next_dial = clock_.now() + kDialPause;
    if (dialed.ok()) {
      peer.connection = *dialed;
      by_connection_[*dialed] = position;
    } else if (peer.state() == Peer::State::kAwaited) {
      // An address that has led there before may do so again: names go with the network they are
      // asked over.
      lose(position, dialed.error());
    }
  }
}

TimePoint Gate::next_due() const {
  if (closed()) return TimePoint::max();
  const std::scoped_lock lock(peers_mutex_);
  const TimePoint now = clock_.now();
  TimePoint due = close_by_;
  bool watching = !strangers_.empty();
  for (const auto& peer : peers_) {
    switch (peer->state()) {
      case Peer::State::kUp:
        due = std::min({due, peer->next_heartbeat, peer->last_heard() + patience_with(*peer, now)});
        break;
      case Peer::State::kDown:
        due = std::min(due, peer->since() + patience_with(*peer, now));
        watching = true;
        [[fallthrough]];
      case Peer::State::kAwaited:
      case Peer::State::kAway:
        if (!peer->dialed()) break;
        watching = true;
        if (!peer->connection) due = std::min(due, peer->next_dial);
        if (peer->state() == Peer::State::kAwaited) {
          due = std::min(due, peer->since() + options_.dial_within);
        } else if (peer->state() == Peer::State::kAway) {
          due = std::min(due, peer->since() + options_.first_returns_within);
        }
        break;
      case Peer::State::kGone:
      case Peer::State::kLost:
        break;
    }
  }
  for (const auto& [connection, stranger] : strangers_) {
    due = std::min(due, stranger.since + patience_with_strangers(now));
  }
  // Whatever is awaited with a deadline is looked at as often as a peer that is up: so a longer
  // pause is this node's own sleep; see excuse_own_sleep().
  if (watching) due = std::min(due, last_turn_ + options_.heartbeat);
  return due;
}

// What happens because time has passed.
void Gate::tend(TimePoint now) {
  measure_load(now);
  excuse_own_sleep(now);
  for (std::size_t i = 0; i < peers_.size(); ++i) tend_peer(i, now);
  std::vector<ConnectionId> silent;
  for (const auto& [connection, stranger] : strangers_) {
    if (now - stranger.since >= patience_with_strangers(now)) silent.push_back(connection);
  }
  for (const ConnectionId connection : silent) {
    log_.warning(fmt::format("{} connected and said nothing for {:.1f} s: cut off",
                             strangers_.at(connection).info.address,
                             seconds(patience_with_strangers(now))));
    strangers_.erase(connection);
    wire_.close(connection);
  }
  tell_drained();
  if (graphs_asked_.exchange(false)) {
    for (const auto& peer : peers_) {
      peer->graph.reset();
      if (peer->state() == Peer::State::kUp) {
        wire_.send(*peer->connection, Lane::kControl, pack(GraphRequest{}));
      }
    }
  }
}

void Gate::tend_peer(std::size_t position, TimePoint now) {
  Peer& peer = *peers_[position];
  if (peer.over()) return;
  if (peer.state() == Peer::State::kUp) {
    if (now - peer.last_heard() >= patience_with(peer, now)) {
      give_up(position,
              {ErrorKind::kLostPeers,
               fmt::format("{} has not been heard of for {:.1f} s: its process is stopped "
                           "or overloaded, its machine or the network is down; if it was only "
                           "slow, raise cluster.failure.dead_after ({:.1f} s)",
                           peer.node(), seconds(now - peer.last_heard()),
                           seconds(options_.dead_after))});
      return;
    }
    if (now >= peer.next_heartbeat) {
      peer.next_heartbeat = now + options_.heartbeat;
      const auto progress = static_cast<std::uint64_t>(core_.own_progress());
      const auto load = static_cast<std::uint32_t>(std::min(100.0 * load_.value(now), 1e9));
      wire_.send(*peer.connection, Lane::kControl, pack(Heartbeat{progress, load}));
    }
    if (accounts_due_[position]->exchange(false)) send_account(position);
    return;
  }
  if (peer.state() == Peer::State::kDown && now - peer.since() >= patience_with(peer, now)) {
    give_up(position, {ErrorKind::kLostPeers,
                       fmt::format("{} is lost: {}, and no new connection came within {:.1f} s "
                                   "(cluster.failure.dead_after)",
                                   peer.node(), peer.end().message, seconds(now - peer.since()))});
    return;
  }
  if (peer.state() == Peer::State::kAway && now - peer.since() >= options_.first_returns_within) {
    lose(position,
         {ErrorKind::kLostPeers,
          fmt::format("{}, and no other process took its place within {:.0f} s", peer.end().message,
                      seconds(options_.first_returns_within))},
         true);
    return;
  }
  if (!peer.dialed()) return;
  if (peer.state() == Peer::State::kAwaited && now - peer.since() >= options_.dial_within) {
    lose(position,
         {ErrorKind::kLostPeers,
          fmt::format("{} does not answer at {} (tried for {:.0f} s); is it running, and "
                      "can this host reach it?{}",
                      peer.node(), without_key(peer.address()), seconds(options_.dial_within),
                      peer.in_directory ? " If nobody can, start it with --listen none." : "")});
    return;
  }
  if (!peer.connection && now >= peer.next_dial) to_dial_.push_back(position);
}

// A gap in which this process slept tells nothing of the peer.
void Gate::hear(Peer& peer) {
  const TimePoint now = clock_.now();
  if (peer.state() == Peer::State::kUp && !has_overslept(now)) {
    peer.patience.add_gap(now - peer.last_heard(), now);
  }
  peer.heard(now);
}

Duration Gate::patience_with(const Peer& peer, TimePoint now) const {
  const double load = load_.value(now);
  if (peer.state() != Peer::State::kUp) {
    // A node that ends goes without a peer whose connection is gone, however busy the hosts are.
    return closing_.load() ? options_.dead_after : peer.patience.with_absence(now, load);
  }
  return peer.on_this_machine ? peer.patience.most() : peer.patience.with_silence(now, load);
}

Duration Gate::patience_with_strangers(TimePoint now) const {
  return Patience(options_.dead_after).with_absence(now, load_.value(now));
}

void Gate::measure_load(TimePoint now) {
  if (!options_.host_load || now < next_measure_) return;
  load_.add(options_.host_load(), now);
  next_measure_ = now + options_.heartbeat;
}

// A turn that nothing bounds may take as long as nobody comes, and that is no sleep.
bool Gate::has_overslept(TimePoint now) const {
  const Duration least = options_.dead_after / 2;
  return now - last_turn_ >= least && turn_until_ <= now - (least - options_.heartbeat);
}

// A process that was stopped, or a machine that slept, has heard of nobody meanwhile, and that is
// nobody's fault.
void Gate::excuse_own_sleep(TimePoint now) {
  const bool overslept = has_overslept(now);
  const Duration pause = now - std::exchange(last_turn_, now);
  if (!overslept) return;
  woke_at_ = now;
  for (const auto& peer : peers_) {
    if (!peer->over()) peer->excuse(pause, now);
  }
  for (auto& [connection, stranger] : strangers_) {
    stranger.since = std::min(stranger.since + pause, now);
  }
}

// As long as others may need to come back and say that they have gone on. What was waiting when it
// woke is heard before the sleep is excused.
bool Gate::has_just_woken() const {
  const TimePoint now = clock_.now();
  return has_overslept(now) || (woke_at_ && now - *woke_at_ < 2 * options_.dead_after);
}

bool Gate::say_goodbye(std::size_t position) {
  Peer& peer = *peers_[position];
  if (peer.over() || peer.state() == Peer::State::kAway) return true;
  if (peer.state() == Peer::State::kAwaited && peer.all_acknowledged()) return true;
  if (peer.state() != Peer::State::kUp || !peer.ready || !peer.all_acknowledged()) return false;
  wire_.send(*peer.connection, Lane::kControl, pack(Bye{}));
  leave(position);
  return true;
}

// The plan's first node hears it last: whom it knows to have ended, nobody waits for any more.
bool Gate::say_goodbyes() {
  const auto first = positions_.find(fellowship_.first());
  bool done = true;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const bool is_last = first != positions_.end() && first->second == i;
    if (!is_last && !say_goodbye(i)) done = false;
  }
  return done && (first == positions_.end() || say_goodbye(first->second));
}

void Gate::tend_closing(TimePoint now) {
  if (close_by_ == TimePoint::max()) close_by_ = now + options_.close_within;
  const bool done = say_goodbyes();
  if (!done && now < close_by_) return;
  // Whoever keeps this node waiting is not the first node's fault.
  const auto first = positions_.find(fellowship_.first());
  if (!done && first != positions_.end()) say_goodbye(first->second);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = *peers_[i];
    if (peer.over()) continue;
    if (!peer.all_acknowledged()) {
      log_.warning(
          fmt::format("{} has not acknowledged all that was sent to it within {:.1f} s of "
                      "this node's end; it may never have arrived",
                      peer.node(), seconds(options_.close_within)));
    }
    leave(i);
  }
  for (const auto& [connection, stranger] : strangers_) wire_.close(connection);
  strangers_.clear();
  refuse_drains();
  close_by_ = TimePoint::max();
  closed_.store(true);
  core_.gate_closed();
}

Gate::Graphs Gate::graphs() const {
  const std::scoped_lock lock(peers_mutex_);
  Graphs result;
  result.complete = !graphs_asked_.load();
  for (const auto& peer : peers_) {
    if (peer->graph) {
      result.graphs.push_back(*peer->graph);
    } else if (peer->state() == Peer::State::kUp) {
      result.complete = false;
    }
  }
  return result;
}

std::vector<PeerStats> Gate::peer_stats() const {
  const std::scoped_lock lock(peers_mutex_);
  std::vector<PeerStats> all;
  for (const auto& peer : peers_) all.push_back(peer->stats());
  return all;
}

void Gate::add_to(WaitGraph& graph) const {
  std::map<std::string, std::size_t> positions;
  for (std::size_t i = 0; i < graph.actors.size(); ++i) positions[graph.actors[i].name] = i;
  const auto position_of = [&](const std::string& actor) {
    const auto [found, added] = positions.emplace(actor, graph.actors.size());
    if (added) {
      ActorWait elsewhere;
      elsewhere.name = actor;
      elsewhere.activity = ActorWait::Activity::kElsewhere;
      graph.actors.push_back(std::move(elsewhere));
    }
    return found->second;
  };
  const auto add = [&](const LinkStats& stats, bool sender_waits) {
    graph.links.push_back({.from = position_of(stats.plan.from),
                           .to = position_of(stats.plan.to),
                           .from_port = stats.plan.from_port,
                           .to_port = stats.plan.to_port,
                           .lane = stats.plan.lane,
                           .sender_waits = sender_waits,
                           .messages_out = stats.in_use_messages,
                           .message_credits = stats.plan.message_credits,
                           .bytes_out = stats.in_use_bytes,
                           .byte_credits = stats.plan.byte_credits,
                           .queued = stats.queued});
  };
  for (const auto& [link, outlet] : outlets_) {
    if (*here_[outlet->peer()]) add(outlet->sending_stats(), outlet->sender_waits());
  }
  for (const auto& [link, inlet] : inlets_) {
    if (*here_[inlet->RemoteOrigin::peer()]) add(inlet->stats(), false);
  }
}

std::vector<LinkStats> Gate::link_stats() const {
  std::vector<LinkStats> all;
  for (const auto& [link, outlet] : outlets_) all.push_back(outlet->sending_stats());
  for (const auto& [link, inlet] : inlets_) all.push_back(inlet->stats());
  return all;
}

void Gate::settle_flows(TraceSnapshot& trace) const {
  for (TraceRecord& record : trace.records) {
    TraceFlow& flow = record.flow;
    if (!flow.known() || flow.within_node()) continue;
    const std::uint32_t link = flow.link - 1;
    if (const auto outlet = outlets_.find(link); outlet != outlets_.end()) {
      flow.number = outlet->second->shared_number(flow.number);
    } else if (const auto inlet = inlets_.find(link); inlet != inlets_.end()) {
      flow.number = inlet->second->shared_number(flow.number);
    }
    if (flow.number == 0) flow = {};
  }
}

}  // namespace troupe::runtime
