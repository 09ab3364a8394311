#include "runtime/node/peers.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/base/overloaded.h"
#include "runtime/node/node_core.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

Error lost(std::string why) { return {ErrorKind::kLostPeers, std::move(why)}; }

}  // namespace

void refuse(const GateParts& parts, ConnectionId connection, const std::string& who, Error error) {
  parts.log.warning(fmt::format("{} was refused: {}", who, error.message));
  parts.wire.send(connection, Lane::kControl, pack(Refusal{std::move(error)}));
  parts.wire.close(connection);
}

std::size_t Peers::add(const std::string& node) {
  const auto [found, added] = positions_.emplace(node, peers_.size());
  if (added) {
    const bool is_head = node == introducer_.head();
    peers_.push_back(std::make_unique<Peer>(node, is_head ? options_.head_address : std::string(),
                                            parts_.clock.now(), options_));
    if (is_head) begin_to_tend(found->second);
    introducer_.add_peer(node);
    links_.add_peer();
    const auto called = options_.called.find(node);
    if (called != options_.called.end()) renew(found->second, called->second);
  }
  return found->second;
}

std::optional<std::size_t> Peers::find(ConnectionId connection) const {
  const auto found = by_connection_.find(connection);
  if (found == by_connection_.end()) return std::nullopt;
  return found->second;
}

void Peers::dials(std::size_t position, ConnectionId connection) {
  peers_[position]->connection = connection;
  by_connection_[connection] = position;
}

void Peers::greet(std::size_t position) {
  Peer& peer = *peers_[position];
  peer.connected = true;
  parts_.wire.send(*peer.connection, Lane::kControl,
                   pack(Hello{handshake_.introduction_for(position, peer)}));
}

// The peer stays as it is until nothing speaks against the process that introduces itself: a
// refused one must not cost the peer the connection that it has.
void Peers::answer(ConnectionId connection, const ConnectionInfo& info, const Hello& hello,
                   bool just_woken) {
  const std::string who = fmt::format("{} at {}", hello.node, info.address);
  const auto refused = [&](Error error) { refuse(parts_, connection, who, std::move(error)); };
  if (auto error = handshake_.mismatch(hello)) return refused(std::move(*error));
  const auto position = find(hello.node);
  if (!position || peers_[*position]->dialed()) {
    return refused({ErrorKind::kUsage, fmt::format("{} waits for no node of the name '{}'",
                                                   options_.node, hello.node)});
  }
  Peer& peer = *peers_[*position];
  if (auto error = handshake_.objection_to_hello(*position, peer, info, hello)) {
    return refused(std::move(*error));
  }
  // The node gave this process up while it slept, and waits for another one.
  if (peer.incarnation() != 0 && hello.given_up && just_woken &&
      options_.keeper->makes_room(hello.node)) {
    return parts_.wire.close(connection);
  }
  if (!handshake_.knows_predecessor(hello) && !peer.acknowledged(hello.received)) {
    return refused(lost(fmt::format("{} has more than was sent", hello.node)));
  }
  come_up(*position, connection, info, hello);
  parts_.wire.send(connection, Lane::kControl,
                   pack(Welcome{handshake_.introduction_for(*position, peer)}));
}

// It is known what the other end has received before anything is sent again. Another process in
// the head's place has received nothing, and the links to it begin anew.
void Peers::take_welcome(std::size_t position, const Welcome& welcome) {
  Peer& peer = *peers_[position];
  if (auto error = handshake_.objection_to_welcome(position, peer, welcome)) {
    return lose(position, std::move(*error));
  }
  if (peer.incarnation() != 0 && welcome.incarnation != peer.incarnation()) {
    // Another process has come in the head's place, before the one that was there was given up.
    if (peer.state() == Peer::State::kDown) {
      let_go(position, lost(fmt::format("{} is lost: {}", peer.node(), peer.end().message)));
    }
    peer.meet_another();
  }
  if (!peer.acknowledged(welcome.received)) {
    return lose(position, lost(fmt::format("{} is lost: it has more than was sent", peer.node())));
  }
  ConnectionInfo info;
  info.address = without_key(peer.address());
  come_up(position, *peer.connection, info, welcome);
  become_ready(peer);
}

// A new connection replaces the old one, which may not have noticed yet that it is broken.
void Peers::come_up(std::size_t position, ConnectionId connection, const ConnectionInfo& info,
                    const Introduction& other) {
  Peer& peer = *peers_[position];
  if (peer.connection != connection) hang_up(peer);
  by_connection_[connection] = position;
  links_.came_up(position);
  const bool first = peer.incarnation() == 0;
  peer.ready = false;
  peer.process = fmt::format("process {} on {}", other.pid, other.host);
  peer.machine = other.machine;
  peer.on_this_machine = !peer.machine.empty() && peer.machine == options_.machine;
  peer.come_up(connection, other.incarnation, parts_.clock.now());
  begin_to_tend(position);
  introducer_.connected(position);
  if (first) introducer_.came(position, info, other.address);
  if (!first) {
    parts_.log.info(fmt::format("{} is connected again", peer.node()));
    return;
  }
  parts_.core.tell_root(Message::of(PeerJoined{peer.node(), other.host, info.address, other.pid}));
}

// Only packets that the other end has not acknowledged are kept. They go out in their order.
// Another process in the head's place does not know who is wanted.
void Peers::become_ready(Peer& peer) {
  peer.ready = peer.met = true;
  if (peer.node() == introducer_.head()) tell_wanted(peer);
  for (const Lane lane : {Lane::kControl, Lane::kData, Lane::kMetrics}) {
    for (const Peer::Kept& kept : peer.kept(lane)) {
      parts_.wire.send(*peer.connection, lane, kept.packet);
    }
  }
}

void Peers::disconnected(std::size_t position, const Error& why) {
  Peer& peer = *peers_[position];
  by_connection_.erase(*peer.connection);
  if (peer.state() == Peer::State::kAwaited && !peer.connected) {
    // The wire refused it, for its key or version: another attempt would not help.
    return lose(position, {why.kind, fmt::format("no connection to {} at {}: {}", peer.node(),
                                                 without_key(peer.address()), why.message)});
  }
  parts_.log.debug(fmt::format("the connection to {} is gone: {}", peer.node(), why.message));
  peer.go_down(fmt::format("its connection closed ({})", why.message), parts_.clock.now());
}

void Peers::take(std::size_t position, Lane lane, AnyPacket& packet) {
  Peer& peer = *peers_[position];
  if (auto* welcome = std::get_if<Welcome>(&packet)) return take_welcome(position, *welcome);
  if (auto* refusal = std::get_if<Refusal>(&packet)) {
    return lose(position, {refusal->error.kind,
                           fmt::format("{} refused: {}", peer.node(), refusal->error.message)});
  }
  std::string fault = "it spoke before it was introduced";
  if (peer.state() == Peer::State::kUp) {
    // Any packet tells that it has taken notice of the introduction.
    if (!peer.ready) become_ready(peer);
    fault = fault_of(position, lane, packet);
  }
  if (fault.empty()) return;
  lose(position, lost(fmt::format("{} is lost: {}", peer.node(), fault)));
}

// A fault costs the peer its place, so a packet that comes once more over a new connection is none:
// acknowledgements and credits are totals, and a directory tells all that is known.
std::string Peers::fault_of(std::size_t position, Lane lane, AnyPacket& packet) {
  Peer& peer = *peers_[position];
  const auto say = [&](const auto& answer) {
    parts_.wire.send(*peer.connection, Lane::kControl, pack(answer));
  };
  return std::visit(
      Overloaded{
          [&](Envelope& envelope) { return receive_envelope(position, lane, envelope); },
          [&](const Account& account) -> std::string {
            const bool right =
                peer.acknowledged(account.received) && links_.heard(position, account.credits);
            return right ? "" : "it gave back what it never had";
          },
          [&](const Heartbeat& heartbeat) { return take_heartbeat(position, heartbeat); },
          [&](const Unheard& unheard) -> std::string {
            std::string fault = introducer_.fault_of_asking(position, {unheard.node});
            if (!fault.empty()) return fault;
            watch(*find(unheard.node), std::chrono::milliseconds(unheard.patience_ms));
            return "";
          },
          [&](const GraphRequest&) -> std::string {
            // Its progress until now, of which the last sign of life may not have told.
            say(Heartbeat{static_cast<std::uint64_t>(parts_.core.wiring().progress())});
            say(GraphAnswer{parts_.core.wait_graph()});
            return "";
          },
          [&](GraphAnswer& answer) -> std::string {
            peer.graph = std::move(answer.graph);
            // The thread that tends the node judges when all graphs are there.
            parts_.core.scheduler().wake();
            return "";
          },
          [&](const Directory& directory) { return take_directory(position, directory); },
          [&](const Wanted& wanted) { return introducer_.introduce(position, wanted); },
          [&](const DirectoryHeard& heard) -> std::string {
            return introducer_.heard(position, heard.edition) ? ""
                                                              : "it answered what it was not told";
          },
          [&](const Bye&) -> std::string {
            leave(position);
            parts_.core.tell_root(Message::of(PeerLeft{peer.node()}));
            return "";
          },
          [](const auto&) -> std::string { return "it introduced itself in the middle of things"; },
      },
      packet);
}

// The head hears all nodes, so the rhythm with each is the head's to say.
std::string Peers::take_heartbeat(std::size_t position, const Heartbeat& heartbeat) {
  Peer& peer = *peers_[position];
  const TimePoint now = parts_.clock.now();
  note_progress(peer, heartbeat.progress);
  peer.patience.add_load(heartbeat.load_percent / 100.0, now);
  if (heartbeat.every_ms == 0) return {};
  if (peer.node() != introducer_.head()) {
    return fmt::format("it said how often to speak, which only {} may", introducer_.head());
  }
  const bool was_longer = peer.rhythm.was_ever_longer();
  const Duration every = std::chrono::milliseconds(heartbeat.every_ms);
  peer.rhythm.change(std::max(every, options_.heartbeat), now);
  if (!was_longer && peer.rhythm.is_longer()) {
    // It may not have heard over an earlier connection whom this node misses, or be another one.
    for (const auto& other : peers_) other->rhythm.missed = false;
  }
  return {};
}

void Peers::note_progress(Peer& peer, std::uint64_t progress) {
  progress_ += static_cast<std::int64_t>(progress) - static_cast<std::int64_t>(peer.progress);
  peer.progress = progress;
}

void Peers::beat(std::size_t position, double load) {
  Peer& peer = *peers_[position];
  const TimePoint now = parts_.clock.now();
  Heartbeat heartbeat;
  heartbeat.progress = static_cast<std::uint64_t>(parts_.core.wiring().progress());
  heartbeat.load_percent = static_cast<std::uint32_t>(std::min(100.0 * load, 1e9));
  if (introducer_.is_head()) {
    const auto every = std::chrono::ceil<std::chrono::milliseconds>(peer.rhythm.length());
    heartbeat.every_ms = static_cast<std::uint32_t>(every.count());
  }
  peer.rhythm.speak(now);
  parts_.wire.send(*peer.connection, Lane::kControl, pack(heartbeat));
}

// One that falls silent may do so with its machine.
void Peers::watch(std::size_t position, Duration patience) {
  const TimePoint now = parts_.clock.now();
  const std::string machine = peers_[position]->machine;
  for (const std::size_t other : tended_) {
    Peer& peer = *peers_[other];
    if (other != position && (machine.empty() || peer.machine != machine)) continue;
    if (peer.state() != Peer::State::kUp) continue;
    const Duration most = peer.patience.most();
    const Duration before = now < peer.watched_until ? peer.patience_of_others : Duration(0);
    peer.watched_until = now + most;
    peer.patience_of_others = std::max(before, std::min(patience, most));
    peer.rhythm.change(options_.heartbeat, now);
    touch(other);
  }
}

bool Peers::may_ask_after(const Peer& peer) const {
  if (introducer_.is_head() || peer.rhythm.missed) return false;
  const Peer& head = *peers_[positions_.at(introducer_.head())];
  return &head != &peer && head.ready && head.rhythm.was_ever_longer();
}

void Peers::ask_after(std::size_t position, Duration patience) {
  Peer& peer = *peers_[position];
  peer.rhythm.missed = true;
  const Peer& head = *peers_[positions_.at(introducer_.head())];
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(patience);
  parts_.wire.send(*head.connection, Lane::kControl,
                   pack(Unheard{peer.node(), static_cast<std::uint32_t>(whole.count())}));
}

// A packet that came over an earlier connection, too, is passed over. One that is missing can only
// come over a new connection, for which the other end sends the rest again.
std::string Peers::receive_envelope(std::size_t position, Lane lane, Envelope& envelope) {
  Peer& peer = *peers_[position];
  switch (
      peer.arrival(lane, envelope.sequence, static_cast<std::size_t>(envelope.message.bytes()))) {
    case Peer::Arrival::kNext:
      break;
    case Peer::Arrival::kAgain:
      return "";
    case Peer::Arrival::kGap:
      parts_.log.warning(
          fmt::format("the connection to {} is cut: packets were lost on the way", peer.node()));
      hang_up(peer);
      peer.go_down("packets were lost on the way", parts_.clock.now());
      return "";
  }
  if (envelope.cause && !peer.acknowledged(envelope.received)) {
    return "it returned a message that was never sent";
  }
  return links_.deliver(position, lane, envelope);
}

std::string Peers::take_directory(std::size_t position, const Directory& directory) {
  if (std::string fault = introducer_.fault_of(position, directory); !fault.empty()) return fault;
  for (const Introducer::Renamed& renamed : introducer_.renamed_in(directory)) {
    renew(renamed.peer, renamed.name);
    // The next head is to introduce the two as well.
    if (renamed.introduced) introducer_.want(renamed.peer);
  }
  const Introducer::Learned learned = introducer_.learn(directory);
  // Another head may keep one that the head before it had given up.
  for (const DirectoryEntry& entry : directory.entries) {
    peers_[*find(entry.node)]->is_done_with = entry.ended;
  }
  for (const std::size_t neighbour : learned.ended) {
    touch(neighbour);
    if (peers_[neighbour]->state() != Peer::State::kAwaited) continue;
    leave(neighbour);
    parts_.core.tell_root(Message::of(PeerLeft{peers_[neighbour]->node()}));
  }
  // Before the answer: with DirectoryHeard this node promises to let them in.
  options_.keeper->neighbours_are(introducer_.neighbours());
  parts_.wire.send(*peers_[position]->connection, Lane::kControl,
                   pack(DirectoryHeard{directory.edition}));
  for (const std::size_t neighbour : learned.to_dial) {
    Peer& peer = *peers_[neighbour];
    // Two that have met keep the roles of then.
    if (peer.dialed() || peer.state() != Peer::State::kAwaited) continue;
    const std::string address = introducer_.address_of(neighbour);
    if (address.empty()) {
      lose(neighbour,
           {ErrorKind::kUsage, fmt::format("{} does not listen, so that {} cannot reach it",
                                           peer.node(), options_.node)});
    } else {
      peer.found_at(address, parts_.clock.now());
      begin_to_tend(neighbour);
    }
  }
  return "";
}

void Peers::meet(std::size_t position) {
  if (peers_[position]->state() != Peer::State::kAwaited || !introducer_.want(position)) return;
  const Peer& head = *peers_[positions_.at(introducer_.head())];
  if (head.ready) tell_wanted(head);
}

void Peers::tell_wanted(const Peer& head) {
  const Wanted wanted = introducer_.wanted();
  if (wanted.nodes.empty()) return;
  parts_.wire.send(*head.connection, Lane::kControl, pack(wanted));
}

// A message is kept until its packet is acknowledged, and leaves now if the peer is ready; else
// become_ready() sends it.
void Peers::send(Outgoing& outgoing) {
  Peer& peer = *peers_[outgoing.peer];
  if (outgoing.link != nullptr) outgoing.link->gone_out(outgoing.message.bytes());
  if (peer.over() || peer.state() == Peer::State::kAway) {
    return links_.bounce(outgoing, peer.node(), peer.end());
  }
  meet(outgoing.peer);
  std::optional<Sealed> sealed = links_.seal(outgoing, peer.received());
  if (!sealed) return;
  Envelope& envelope = sealed->envelope;
  envelope.sequence = peer.next_sequence(sealed->lane);
  Packet packet = pack(envelope, parts_.types);
  // A message on its way back is not kept: no actor here would take it back.
  Message message = envelope.cause ? Message() : std::move(envelope.message);
  const Packet& kept = peer.keep(sealed->lane, {std::move(packet), std::move(message)});
  if (peer.ready) parts_.wire.send(*peer.connection, sealed->lane, kept);
}

void Peers::hang_up(const Peer& peer) {
  if (!peer.connection) return;
  by_connection_.erase(*peer.connection);
  parts_.wire.close(*peer.connection);
}

void Peers::give_up(std::size_t position, Error error) {
  Peer& peer = *peers_[position];
  if (!handshake_.may_return(peer)) return lose(position, std::move(error), true);
  hang_up(peer);
  peer.go_down(error.message, parts_.clock.now());
  let_go(position, std::move(error));
}

// All that is kept comes back before the links begin anew, since nothing may be out on them then.
void Peers::let_go(std::size_t position, Error error) {
  Peer& peer = *peers_[position];
  note_progress(peer, 0);
  parts_.log.warning(error.message);
  return_kept(position);
  links_.begin_anew(position);
  peer.finish(Peer::State::kAway, error, parts_.clock.now());
  parts_.core.tell_root(Message::of(PeerAway{peer.node(), std::move(error)}));
}

void Peers::return_kept(std::size_t position) {
  Peer& peer = *peers_[position];
  for (const Lane lane : {Lane::kControl, Lane::kData, Lane::kMetrics}) {
    for (Peer::Kept& kept : std::exchange(peer.kept(lane), {})) {
      if (!kept.message.empty()) links_.return_kept(std::move(kept.message), peer.end());
    }
  }
  links_.forget(position);
}

void Peers::finish(std::size_t position, Peer::State state, Error error) {
  Peer& peer = *peers_[position];
  links_.ended(position);
  hang_up(peer);
  note_progress(peer, 0);
  peer.finish(state, std::move(error), parts_.clock.now());
  std::erase(tended_, position);
  introducer_.ended(position);
}

void Peers::begin_to_tend(std::size_t position) {
  const auto place = std::ranges::lower_bound(tended_, position);
  if (place == tended_.end() || *place != position) tended_.insert(place, position);
  touch(position);
}

// The peer is heard until its connection closes. One that has not come to this head may be known to
// the others.
void Peers::go_on_without(std::size_t position) {
  Peer& peer = *peers_[position];
  if (peer.state() == Peer::State::kAwaited) return leave(position);
  peer.is_done_with = true;
  touch(position);
}

// All that was between the earlier process and this node is settled before the links begin anew.
// Messages for one that never came were not meant for that one alone.
void Peers::renew(std::size_t position, const std::string& name) {
  Peer& peer = *peers_[position];
  if (peer.state() == Peer::State::kAwaited) {
    hang_up(peer);
  } else {
    if (!peer.over())
      lose(position, lost(fmt::format("{} is lost: {} comes in its place", peer.node(), name)));
    links_.begin_anew(position);
  }
  peer.renew(name, parts_.clock.now());
  std::erase(tended_, position);
  introducer_.renew(position, name);
}

// When the head is gone, no one can introduce the neighbours that only it knew.
void Peers::lose(std::size_t position, Error error, bool fell_silent) {
  parts_.log.warning(error.message);
  forget(position, std::move(error), fell_silent);
}

void Peers::forget(std::size_t position, Error error, bool fell_silent) {
  finish(position, Peer::State::kLost, error);
  const std::string node = peers_[position]->node();
  return_kept(position);
  parts_.core.tell_root(Message::of(PeerLost{node, std::move(error), fell_silent}));
  if (node == introducer_.head()) leave_awaited();
}

void Peers::leave(std::size_t position) {
  const std::string node = peers_[position]->node();
  finish(position, Peer::State::kGone, {ErrorKind::kInternal, node + " has ended"});
  return_kept(position);
  if (node == introducer_.head()) leave_awaited();
}

void Peers::leave_awaited() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i]->state() != Peer::State::kAwaited) continue;
    leave(i);
    parts_.core.tell_root(Message::of(PeerLeft{peers_[i]->node()}));
  }
}

}  // namespace troupe::runtime
