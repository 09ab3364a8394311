// The part of the Gate through which nodes that share links find and trust each other.
//
// Whenever the plan's first node has met another one, it tells those of it that share links with
// it, and it of them. When the one that is to be dialed has heard of the other, that one is told to
// dial. Who ends is told of too, so that nobody waits for a node that cannot come.

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "runtime/node_core.h"
#include "runtime/transport/gate.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

bool same_process(const DirectoryEntry& one, const DirectoryEntry& other) {
  return one.address == other.address && one.key == other.key &&
         one.incarnation == other.incarnation;
}

}  // namespace

// The first node's.
void Gate::tend_directory() {
  for (const auto& peer : peers_) {
    if (peer->directory_due && peer->state() == Peer::State::kUp) send_directory(*peer);
  }
}

void Gate::make_directory_due(const std::string& node) {
  for (const std::string& fellow : fellowship_.fellows_of(node)) {
    peers_[positions_.at(fellow)]->directory_due = true;
  }
}

void Gate::send_directory(Peer& peer) {
  peer.directory_due = false;
  Directory directory;
  directory.edition = peer.edition_told = edition_;
  for (const std::string& fellow : fellowship_.fellows_of(peer.node())) {
    const Peer& other = *peers_[positions_.at(fellow)];
    if (other.over()) {
      directory.entries.push_back({fellow, "", "", 0, false});
    } else if (other.in_edition != 0) {
      const Pair& pair = pair_of(peer, other);
      const bool lets_in = other.edition_heard >= peer.in_edition;
      directory.entries.push_back(other.entry);
      directory.entries.back().incarnation = pair.incarnation;
      directory.entries.back().dial = lets_in && pair.dialer == peer.node();
    }
  }
  if (!directory.entries.empty()) wire_.send(*peer.connection, Lane::kControl, pack(directory));
}

const Gate::Pair& Gate::pair_of(const Peer& one, const Peer& other) {
  const auto [found, fresh] = pairs_.try_emplace(std::minmax(one.node(), other.node()));
  if (fresh) {
    found->second.incarnation = options_.draw(found->first.first, found->first.second);
    CHECK(found->second.incarnation != 0, "0 stands for a node that has ended");
    found->second.dialer = dialer_of(one, other);
  }
  return found->second;
}

std::string Gate::dialer_of(const Peer& one, const Peer& other) const {
  const Reach of_one = reach_of(one.whereabouts, other.whereabouts);
  const Reach of_other = reach_of(other.whereabouts, one.whereabouts);
  const bool one_dials =
      of_one == of_other ? fellowship_.dials(one.node(), other.node()) : of_one < of_other;
  return one_dials ? one.node() : other.node();
}

// Those that dial it may do so now.
void Gate::take_directory_heard(std::size_t position, const DirectoryHeard& heard) {
  Peer& peer = *peers_[position];
  if (heard.edition > peer.edition_told) {
    lose(position, {ErrorKind::kLostPeers,
                    fmt::format("{} is lost: it answered what it was not told", peer.node())});
    return;
  }
  if (heard.edition <= peer.edition_heard) return;
  peer.edition_heard = heard.edition;
  for (const std::string& fellow : fellowship_.fellows_of(peer.node())) {
    Peer& other = *peers_[positions_.at(fellow)];
    if (other.over() || other.in_edition == 0) continue;
    if (pair_of(peer, other).dialer == fellow) other.directory_due = true;
  }
}

// What rule a directory breaks; "": none.
std::string Gate::fault_of(const Peer& sender, const Directory& directory) const {
  if (sender.node() != fellowship_.first()) {
    return fmt::format("it told of other nodes, which only {} may", fellowship_.first());
  }
  std::set<std::string_view> told;
  for (const DirectoryEntry& entry : directory.entries) {
    if (!told.insert(entry.node).second) return fmt::format("it told of {} twice", entry.node);
    const auto found = positions_.find(entry.node);
    if (found == positions_.end() || !peers_[found->second]->in_directory) {
      return fmt::format("it told of '{}', which shares no link with {}", entry.node,
                         options_.node);
    }
    const DirectoryEntry& known = peers_[found->second]->entry;
    if (entry.incarnation != 0 && known.incarnation != 0 && !same_process(entry, known)) {
      return fmt::format("it told of another process in the place of {}", entry.node);
    }
  }
  return {};
}

void Gate::take_directory(std::size_t position, const Directory& directory) {
  const Peer& sender = *peers_[position];
  if (const std::string fault = fault_of(sender, directory); !fault.empty()) {
    lose(position, {ErrorKind::kLostPeers, fmt::format("{} is lost: {}", sender.node(), fault)});
    return;
  }
  std::vector<std::size_t> to_dial;
  for (const DirectoryEntry& entry : directory.entries) {
    const std::size_t fellow = positions_.at(entry.node);
    Peer& peer = *peers_[fellow];
    if (entry.incarnation != 0) {
      peer.entry = entry;
      if (entry.dial) to_dial.push_back(fellow);
    } else if (peer.state() == Peer::State::kAwaited) {
      leave(fellow);
      tell_root(Message::of(PeerLeft{entry.node}));
    }
  }
  if (options_.on_directory) {
    std::vector<DirectoryEntry> fellows;
    for (const auto& peer : peers_) {
      const bool told = peer->in_directory && peer->entry.incarnation != 0;
      if (told && !peer->over()) fellows.push_back(peer->entry);
    }
    options_.on_directory(fellows);
  }
  wire_.send(*sender.connection, Lane::kControl, pack(DirectoryHeard{directory.edition}));
  for (const std::size_t fellow : to_dial) dial_fellow(fellow);
}

// Who has met keeps the roles of then.
void Gate::dial_fellow(std::size_t position) {
  Peer& peer = *peers_[position];
  if (peer.dialed() || peer.state() != Peer::State::kAwaited) return;
  if (peer.entry.address.empty()) {
    lose(position, {ErrorKind::kUsage, fmt::format("{} does not listen, so that {} cannot reach it",
                                                   peer.node(), options_.node)});
    return;
  }
  const std::string key = peer.entry.key.empty() ? "" : "#" + peer.entry.key;
  peer.found_at(peer.entry.address + key, clock_.now());
}

std::optional<Error> Gate::not_as_told(const Peer& peer, const Introduction& other,
                                       const std::string& key) const {
  if (is_first() || !peer.in_directory) return std::nullopt;
  if (peer.entry.incarnation == 0) {
    return Error{ErrorKind::kLostPeers,
                 fmt::format("{} has not been told of {} yet", options_.node, peer.node())};
  }
  if (other.incarnation == peer.entry.incarnation && key == peer.entry.key) return std::nullopt;
  return Error{ErrorKind::kLostPeers, fmt::format("{} is another process than {} has told of",
                                                  peer.node(), fellowship_.first())};
}

Whereabouts Gate::whereabouts(const std::string& node, const std::string& address,
                              const std::string& from) const {
  const auto source = parse_address(from);
  const bool is_here = options_.is_this_machine && source.ok() &&
                       source->kind == Address::Kind::kTcp &&
                       options_.is_this_machine(source->host);
  return {node, address, from, is_here};
}

// A wire without hosts and ports, such as a simulated one, has addresses of its own.
std::optional<Error> Gate::cannot_be_met(const Peer& peer, const ConnectionInfo& info,
                                         const std::string& address) const {
  const bool is_new = peer.incarnation() == 0;
  if (!is_first() || !is_new) return std::nullopt;
  const Whereabouts there = whereabouts(peer.node(), address, info.address);
  if (parse_address(wire_.address()).ok()) {
    if (auto error = objection_to(there)) return error;
  }
  for (const std::string& node : fellowship_.fellows_of(peer.node())) {
    const Peer& fellow = *peers_[positions_.at(node)];
    if (fellow.over() || fellow.in_edition == 0) continue;
    if (auto error = objection_to(there, fellow.whereabouts)) return error;
  }
  return std::nullopt;
}

void Gate::tell_of_coming(Peer& peer, const ConnectionInfo& info, const Introduction& other) {
  peer.entry = {peer.node(), other.address, info.key, 0, false};
  peer.whereabouts = whereabouts(peer.node(), other.address, info.address);
  peer.in_edition = ++edition_;
  make_directory_due(peer.node());
}

// Of those that only the first node could have told of, nobody will tell when it is gone.
void Gate::tell_of_end(const Peer& peer) {
  if (is_first()) {
    make_directory_due(peer.node());
    return;
  }
  if (peer.node() != fellowship_.first()) return;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i]->state() != Peer::State::kAwaited) continue;
    const std::string fellow = peers_[i]->node();
    leave(i);
    tell_root(Message::of(PeerLeft{fellow}));
  }
}

}  // namespace troupe::runtime
