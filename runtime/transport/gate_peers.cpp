// The part of the Gate that gets to know peers and parts from them.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/node_core.h"
#include "runtime/transport/gate.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

Error expired_key() {
  return {ErrorKind::kLostPeers,
          "the token has expired, and only nodes that joined with it before may use it; make "
          "another one with 'troupe token'"};
}

}  // namespace

std::optional<std::size_t> Gate::find_peer(ConnectionId connection) const {
  const auto found = by_connection_.find(connection);
  if (found == by_connection_.end()) return std::nullopt;
  return found->second;
}

void Gate::connected(ConnectionId connection, const ConnectionInfo& info) {
  const std::scoped_lock lock(peers_mutex_);
  const auto position = find_peer(connection);
  if (!position) {
    strangers_[connection] = {info, clock_.now()};
    return;
  }
  Peer& peer = *peers_[*position];
  peer.heard(clock_.now());
  peer.connected = true;
  Hello hello;
  static_cast<Introduction&>(hello) = introduction_for(peer);
  wire_.send(connection, Lane::kControl, pack(hello));
}

void Gate::disconnected(ConnectionId connection, const Error& why) {
  const std::scoped_lock lock(peers_mutex_);
  strangers_.erase(connection);
  drains_.erase(connection);
  const auto position = find_peer(connection);
  if (!position) return;
  by_connection_.erase(connection);
  Peer& peer = *peers_[*position];
  if (peer.state() == Peer::State::kAwaited && !peer.connected) {
    // Refused below this layer, for its key or version: trying again would not help.
    lose(*position, {why.kind, fmt::format("no connection to {} at {}: {}", peer.node(),
                                           without_key(peer.address()), why.message)});
    return;
  }
  log_.debug(fmt::format("the connection to {} is gone: {}", peer.node(), why.message));
  peer.go_down(fmt::format("its connection closed ({})", why.message), clock_.now());
}

std::uint64_t Gate::own_incarnation(const Peer& peer) const {
  const bool is_fellow = !is_first() && peer.in_directory;
  return is_fellow ? peer.entry.incarnation : options_.incarnation;
}

Introduction Gate::introduction_for(const Peer& peer) const {
  Introduction introduction;
  introduction.node = options_.node;
  introduction.incarnation = own_incarnation(peer);
  introduction.peer_incarnation = peer.incarnation();
  introduction.host = options_.host;
  introduction.pid = options_.pid;
  introduction.machine = options_.machine;
  introduction.terms = options_.terms;
  introduction.address = wire_.address();
  introduction.received = peer.received();
  introduction.given_up = peer.state() == Peer::State::kAway;
  return introduction;
}

// The first packet of a connection that was dialed from elsewhere.
void Gate::introduce(ConnectionId connection, AnyPacket& packet) {
  const Stranger stranger = strangers_.at(connection);
  strangers_.erase(connection);
  if (const auto* hello = std::get_if<Hello>(&packet)) {
    answer_hello(connection, stranger, *hello);
  } else if (const auto* enrolment = std::get_if<Enrolment>(&packet)) {
    answer_enrolment(connection, stranger, *enrolment);
  } else if (const auto* request = std::get_if<DrainRequest>(&packet)) {
    answer_drain_request(connection, stranger, *request);
  } else {
    log_.warning(fmt::format("{} did not introduce itself: cut off", stranger.info.address));
    wire_.close(connection);
  }
}

void Gate::refuse(ConnectionId connection, const std::string& who, Error error) {
  log_.warning(fmt::format("{} was refused: {}", who, error.message));
  wire_.send(connection, Lane::kControl, pack(Refusal{std::move(error)}));
  wire_.close(connection);
}

// What stands against working with whoever introduces itself so.
std::optional<Error> Gate::objection(const Introduction& other) const {
  if (other.version != kProtocolVersion) {
    return Error{ErrorKind::kUsage,
                 fmt::format("protocol version {} here, {} there; all nodes of a run need the same "
                             "version of troupe",
                             kProtocolVersion, other.version)};
  }
  for (const Term& own : options_.terms) {
    const auto theirs = std::find_if(other.terms.begin(), other.terms.end(),
                                     [&](const Term& term) { return term.name == own.name; });
    const std::string value = theirs == other.terms.end() ? "nothing" : theirs->value;
    if (value != own.value) {
      return Error{own.mismatch, fmt::format("another {}: {} has {}, {} has {}", own.name,
                                             options_.node, own.value, other.node, value)};
    }
  }
  return std::nullopt;
}

void Gate::answer_hello(ConnectionId connection, const Stranger& stranger, const Hello& hello) {
  const std::string who = fmt::format("{} at {}", hello.node, stranger.info.address);
  if (auto error = objection(hello)) {
    refuse(connection, who, std::move(*error));
    return;
  }
  const auto found = positions_.find(hello.node);
  if (found == positions_.end() || peers_[found->second]->dialed()) {
    refuse(connection, who,
           {ErrorKind::kUsage,
            fmt::format("{} waits for no node of the name '{}'", options_.node, hello.node)});
    return;
  }
  Peer& peer = *peers_[found->second];
  const bool known = peer.incarnation() != 0;
  const bool knows_none = hello.peer_incarnation == 0;
  const bool knows_predecessor =
      !knows_none && std::find(options_.predecessors.begin(), options_.predecessors.end(),
                               hello.peer_incarnation) != options_.predecessors.end();
  // A dialer whose Welcome was lost does not know of this process yet; neither has sent anything.
  const bool same = hello.incarnation == peer.incarnation() &&
                    stranger.info.key == peer.entry.key &&
                    (hello.peer_incarnation == own_incarnation(peer) ||
                     ((knows_none || knows_predecessor) && !peer.met));
  if (peer.over()) {
    refuse(connection, who,
           {ErrorKind::kLostPeers, fmt::format("the run has gone on without {}", hello.node)});
  } else if (auto error = not_as_told(peer, hello, stranger.info.key)) {
    refuse(connection, who, std::move(*error));
  } else if (known && same && hello.given_up && has_just_woken() && options_.given_up_by) {
    wire_.close(connection);
    options_.given_up_by(hello.node);
  } else if (known && !same) {
    refuse(connection, who,
           {ErrorKind::kLostPeers, fmt::format("{} is taken by {}", hello.node, peer.process)});
  } else if (!known && !knows_predecessor && stranger.info.key_expired && !peer.invited) {
    refuse(connection, who, expired_key());
  } else if (!known && !knows_none && !knows_predecessor) {
    refuse(
        connection, who,
        {ErrorKind::kLostPeers, fmt::format("{} is a new process and knows nothing of what {} did",
                                            options_.node, hello.node)});
  } else if (!knows_predecessor && !peer.acknowledged(hello.received)) {
    refuse(connection, who,
           {ErrorKind::kLostPeers, fmt::format("{} has more than was sent", hello.node)});
  } else if (auto wrong = cannot_be_met(peer, stranger.info, hello.address)) {
    refuse(connection, who, std::move(*wrong));
  } else {
    come_up(found->second, connection, stranger.info, hello);
    Welcome welcome;
    static_cast<Introduction&>(welcome) = introduction_for(peer);
    wire_.send(connection, Lane::kControl, pack(welcome));
  }
}

void Gate::answer_enrolment(ConnectionId connection, const Stranger& stranger,
                            const Enrolment& enrolment) {
  const std::string who =
      fmt::format("process {} of {} at {}", enrolment.pid, enrolment.host, stranger.info.address);
  Introduction as_introduction;
  as_introduction.version = enrolment.version;
  as_introduction.terms = options_.terms;
  if (auto error = objection(as_introduction)) {
    refuse(connection, who, std::move(*error));
    return;
  }
  if (!options_.invite) {
    refuse(connection, who,
           {ErrorKind::kUsage, fmt::format("{} takes in no new nodes", options_.node)});
    return;
  }
  if (stranger.info.key_expired) {
    refuse(connection, who, expired_key());
    return;
  }
  std::vector<std::string> awaited;
  for (const auto& peer : peers_) {
    if (peer->state() == Peer::State::kAwaited && !peer->dialed()) awaited.push_back(peer->node());
  }
  const Result<EnrolmentAnswer> answer = options_.invite(enrolment, awaited);
  if (!answer.ok()) {
    refuse(connection, who, answer.error());
    return;
  }
  if (const auto* invitation = std::get_if<Invitation>(&*answer)) {
    if (const auto peer = positions_.find(invitation->node); peer != positions_.end()) {
      peers_[peer->second]->invited = true;
    }
  }
  wire_.send(connection, Lane::kControl,
             std::visit([](const auto& a) { return pack(a); }, *answer));
  wire_.close(connection);
}

void Gate::take_welcome(std::size_t position, ConnectionId connection, const Welcome& welcome) {
  Peer& peer = *peers_[position];
  const bool restarted = peer.incarnation() != 0 && welcome.incarnation != peer.incarnation();
  const bool succeeds = restarted && may_return(peer) && peer.state() != Peer::State::kUp;
  auto error = objection(welcome);
  if (!error && welcome.node != peer.node()) {
    error = Error{ErrorKind::kUsage,
                  fmt::format("{} answers at {}, where {} was expected", welcome.node,
                              without_key(peer.address()), peer.node())};
  }
  if (!error && peer.state() == Peer::State::kAwaited) {
    error = not_as_told(peer, welcome, peer.entry.key);
  }
  if (!error && !succeeds && (restarted || peer.state() == Peer::State::kUp)) {
    error = Error{ErrorKind::kLostPeers,
                  fmt::format("{} is lost: another process has taken its place", peer.node())};
  }
  if (!error && !restarted && peer.state() == Peer::State::kAway) {
    error = Error{ErrorKind::kLostPeers,
                  fmt::format("{} is lost: it is back after it was given up", peer.node())};
  }
  if (!error && succeeds) {
    if (peer.state() == Peer::State::kDown) {
      let_go(position, {ErrorKind::kLostPeers,
                        fmt::format("{} is lost: {}", peer.node(), peer.end().message)});
    }
    peer.meet_another();
  }
  if (!error && !peer.acknowledged(welcome.received)) {
    error = Error{ErrorKind::kLostPeers,
                  fmt::format("{} is lost: it has more than was sent", peer.node())};
  }
  if (error) {
    lose(position, std::move(*error));
    return;
  }
  ConnectionInfo info;
  info.address = without_key(peer.address());
  come_up(position, connection, info, welcome);
  become_ready(peer);
}

void Gate::come_up(std::size_t position, ConnectionId connection, const ConnectionInfo& info,
                   const Introduction& other) {
  Peer& peer = *peers_[position];
  if (peer.connection && *peer.connection != connection) {
    by_connection_.erase(*peer.connection);
    wire_.close(*peer.connection);
  }
  by_connection_[connection] = position;
  here_[position]->store(true);
  const bool first = peer.incarnation() == 0;
  peer.ready = false;
  peer.process = fmt::format("process {} on {}", other.pid, other.host);
  peer.on_this_machine = !options_.machine.empty() && other.machine == options_.machine;
  peer.come_up(connection, other.incarnation, clock_.now());
  // What was said of others over an earlier connection may not have been heard.
  peer.directory_due = is_first();
  if (first && is_first()) tell_of_coming(peer, info, other);
  // What was said on an earlier connection may not have been heard; and whoever welcomed us waits
  // for a word before it sends.
  for (auto& [link, inlet] : inlets_) {
    if (inlet->RemoteOrigin::peer() == position) credits_told_.erase(link);
  }
  accounts_due_[position]->store(true);
  if (!first) {
    log_.info(fmt::format("{} is connected again", peer.node()));
    return;
  }
  tell_root(Message::of(PeerJoined{peer.node(), other.host, info.address, other.pid}));
}

// Sends again what the other end does not have.
void Gate::become_ready(Peer& peer) {
  peer.ready = peer.met = true;
  for (const Lane lane : {Lane::kControl, Lane::kData, Lane::kMetrics}) {
    for (const Peer::Kept& kept : peer.kept(lane)) {
      wire_.send(*peer.connection, lane, kept.packet);
    }
  }
}

// The connection is of no use any more; there may be another.
void Gate::cut(std::size_t position, const std::string& why) {
  Peer& peer = *peers_[position];
  log_.warning(fmt::format("the connection to {} is cut: {}", peer.node(), why));
  by_connection_.erase(*peer.connection);
  wire_.close(*peer.connection);
  peer.go_down(why, clock_.now());
}

void Gate::part_from(Peer& peer) {
  if (!peer.connection) return;
  by_connection_.erase(*peer.connection);
  wire_.close(*peer.connection);
}

bool Gate::may_return(const Peer& peer) const {
  return !is_first() && peer.node() == fellowship_.first() && peer.incarnation() != 0 &&
         options_.first_returns_within > Duration{0} && !closing_.load();
}

void Gate::give_up(std::size_t position, Error error) {
  Peer& peer = *peers_[position];
  if (!may_return(peer)) {
    lose(position, std::move(error), true);
    return;
  }
  part_from(peer);
  peer.go_down(error.message, clock_.now());
  let_go(position, std::move(error));
}

void Gate::let_go(std::size_t position, Error error) {
  Peer& peer = *peers_[position];
  peers_progress_.fetch_sub(static_cast<std::int64_t>(peer.progress()));
  peer.progressed(0);
  log_.warning(error.message);
  return_kept(position);
  for (const auto& [link, outlet] : outlets_) {
    if (outlet->peer() == position) outlet->begin_anew();
  }
  for (const auto& [link, inlet] : inlets_) {
    if (inlet->RemoteOrigin::peer() == position) inlet->begin_anew();
  }
  peer.go_away(error, clock_.now());
  tell_root(Message::of(PeerAway{peer.node(), std::move(error)}));
}

void Gate::lose(std::size_t position, Error error, bool unheard) {
  Peer& peer = *peers_[position];
  here_[position]->store(false);
  part_from(peer);
  peers_progress_.fetch_sub(static_cast<std::int64_t>(peer.progress()));
  peer.progressed(0);
  peer.finish(Peer::State::kLost, error, clock_.now());
  log_.warning(error.message);
  const std::string node = peer.node();
  return_kept(position);
  tell_root(Message::of(PeerLost{node, std::move(error), unheard}));
  tell_of_end(peer);
}

void Gate::leave(std::size_t position) {
  Peer& peer = *peers_[position];
  here_[position]->store(false);
  part_from(peer);
  peer.finish(Peer::State::kGone, {ErrorKind::kInternal, peer.node() + " has ended"}, clock_.now());
  return_kept(position);
  tell_of_end(peer);
}

void Gate::tell_root(Message message) { core_.tell_root(std::move(message)); }

}  // namespace troupe::runtime
