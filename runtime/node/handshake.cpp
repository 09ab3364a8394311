#include "runtime/node/handshake.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

Error lost_peer(std::string why) { return {ErrorKind::kLostPeers, std::move(why)}; }

}  // namespace

Error expired_token() {
  return lost_peer(
      "the token has expired, and only nodes that joined with it before may use it; make "
      "another one with 'troupe token'");
}

Introduction Handshake::introduction_for(std::size_t position, const Peer& peer) const {
  Introduction introduction;
  introduction.node = options_.node;
  introduction.incarnation = introducer_.is_neighbour(position)
                                 ? introducer_.incarnation_with(position)
                                 : options_.incarnation;
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

// A term that the other one does not name at all is a mismatch, too.
std::optional<Error> Handshake::mismatch(const Introduction& other) const {
  for (const Term& term : options_.terms) {
    const auto theirs = std::ranges::find(other.terms, term.name, &Term::name);
    const std::string value = theirs == other.terms.end() ? "nothing" : theirs->value;
    if (value != term.value) {
      return Error{term.mismatch, fmt::format("another {}: {} has {}, {} has {}", term.name,
                                              options_.node, term.value, other.node, value)};
    }
  }
  return std::nullopt;
}

bool Handshake::knows_predecessor(const Introduction& other) const {
  return other.peer_incarnation != 0 &&
         std::ranges::count(options_.predecessors, other.peer_incarnation) > 0;
}

bool Handshake::may_return(const Peer& peer) const {
  return !introducer_.is_head() && peer.node() == introducer_.head() && peer.incarnation() != 0 &&
         options_.head_returns_within > Duration{0} && !closing_;
}

std::optional<Error> Handshake::objection_to_hello(std::size_t position, const Peer& peer,
                                                   const ConnectionInfo& info,
                                                   const Hello& hello) const {
  const bool is_another = hello.node != peer.node();
  if (peer.over() || is_another) {
    return lost_peer(fmt::format("the run has gone on without {}", hello.node));
  }
  if (auto error = introducer_.objection_to(position, hello, info.key)) return error;
  const bool knows_none = hello.peer_incarnation == 0;
  const bool knows_predecessor = this->knows_predecessor(hello);
  if (peer.incarnation() != 0) {
    // The peer has come before: this is the same process, and it knows this one. A process whose
    // Welcome was lost does not know this one yet; then neither has sent anything.
    const std::uint64_t own = introduction_for(position, peer).incarnation;
    const bool knows_this =
        hello.peer_incarnation == own || ((knows_none || knows_predecessor) && !peer.met);
    const bool is_same = hello.incarnation == peer.incarnation() &&
                         info.key == introducer_.key_of(position) && knows_this;
    if (is_same) return std::nullopt;
    return lost_peer(fmt::format("{} is taken by {}", hello.node, peer.process));
  }
  if (!knows_predecessor && info.key_expired && !peer.invited) return expired_token();
  if (!knows_none && !knows_predecessor) {
    return lost_peer(fmt::format("{} is a new process and knows nothing of what {} did",
                                 options_.node, hello.node));
  }
  return introducer_.objection(position, info, hello.address, wire_.address());
}

std::optional<Error> Handshake::objection_to_welcome(std::size_t position, const Peer& peer,
                                                     const Welcome& welcome) const {
  if (auto error = mismatch(welcome)) return error;
  if (welcome.node != peer.node()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} answers at {}, where {} was expected", welcome.node,
                             without_key(peer.address()), peer.node())};
  }
  if (peer.state() == Peer::State::kAwaited) {
    if (auto error = introducer_.objection_to(position, welcome, introducer_.key_of(position))) {
      return error;
    }
  }
  // A peer that is down must be the process that it was, or another one in the head's place. One
  // that is away was given up, and can only be another one.
  const bool is_another = peer.incarnation() != 0 && welcome.incarnation != peer.incarnation();
  if (peer.state() == Peer::State::kUp || (is_another && !may_return(peer))) {
    return lost_peer(fmt::format("{} is lost: another process has taken its place", peer.node()));
  }
  if (peer.state() == Peer::State::kAway && !is_another) {
    return lost_peer(fmt::format("{} is lost: it is back after it was given up", peer.node()));
  }
  return std::nullopt;
}

}  // namespace troupe::runtime
