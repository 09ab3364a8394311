// The part of the Gate that takes in what peers send.

#include <utility>

#include <fmt/format.h>

#include "runtime/node_core.h"
#include "runtime/transport/gate.h"

namespace troupe::runtime {

void Gate::arrived(ConnectionId connection, Lane lane, Packet packet) {
  const std::scoped_lock lock(peers_mutex_);
  const auto position = find_peer(connection);
  if (!position && !strangers_.contains(connection)) return;  // cut off a moment ago
  Result<AnyPacket> read = unpack(packet, types_);
  if (!read.ok()) {
    const std::string what = fmt::format("sent what cannot be read ({})", read.error().message);
    if (position) {
      lose(*position, {ErrorKind::kLostPeers,
                       fmt::format("{} is lost: it {}", peers_[*position]->node(), what)});
    } else {
      log_.warning(fmt::format("{} {}: cut off", strangers_.at(connection).info.address, what));
      strangers_.erase(connection);
      wire_.close(connection);
    }
    return;
  }
  if (position) {
    take_packet(*position, lane, *read);
  } else {
    introduce(connection, *read);
  }
}

void Gate::arriving(ConnectionId connection) {
  const std::scoped_lock lock(peers_mutex_);
  if (const auto position = find_peer(connection)) hear(*peers_[*position]);
}

void Gate::take_packet(std::size_t position, Lane lane, AnyPacket& packet) {
  Peer& peer = *peers_[position];
  hear(peer);
  if (auto* welcome = std::get_if<Welcome>(&packet)) {
    take_welcome(position, *peer.connection, *welcome);
    return;
  }
  if (auto* refusal = std::get_if<Refusal>(&packet)) {
    lose(position,
         {refusal->error.kind, fmt::format("{} refused: {}", peer.node(), refusal->error.message)});
    return;
  }
  if (peer.state() != Peer::State::kUp) {
    lose(position, {ErrorKind::kLostPeers,
                    fmt::format("{} is lost: it spoke before it was introduced", peer.node())});
    return;
  }
  // Whatever it says now, it has taken notice of the introduction.
  if (!peer.ready) become_ready(peer);
  if (auto* parcel = std::get_if<Parcel>(&packet)) {
    take_parcel(position, lane, *parcel);
  } else if (auto* account = std::get_if<Account>(&packet)) {
    take_account(position, *account);
  } else if (auto* heartbeat = std::get_if<Heartbeat>(&packet)) {
    const auto progress = static_cast<std::int64_t>(heartbeat->progress);
    peers_progress_.fetch_add(progress - static_cast<std::int64_t>(peer.progress()));
    peer.progressed(heartbeat->progress);
    peer.patience.add_load(heartbeat->load_percent / 100.0, clock_.now());
  } else if (std::holds_alternative<GraphRequest>(packet)) {
    wire_.send(*peer.connection, Lane::kControl, pack(GraphAnswer{core_.wait_graph()}));
  } else if (auto* answer = std::get_if<GraphAnswer>(&packet)) {
    peer.graph = std::move(answer->graph);
    core_.graph_arrived();
  } else if (const auto* directory = std::get_if<Directory>(&packet)) {
    take_directory(position, *directory);
  } else if (const auto* heard = std::get_if<DirectoryHeard>(&packet)) {
    take_directory_heard(position, *heard);
  } else if (std::holds_alternative<Bye>(packet)) {
    const std::string node = peer.node();
    leave(position);
    tell_root(Message::of(PeerLeft{node}));
  } else {
    lose(position,
         {ErrorKind::kLostPeers,
          fmt::format("{} is lost: it introduced itself in the middle of things", peer.node())});
  }
}

void Gate::take_account(std::size_t position, const Account& account) {
  Peer& peer = *peers_[position];
  bool right = peer.acknowledged(account.received);
  for (const LinkCredit& credit : account.credits) {
    const auto outlet = outlets_.find(credit.link);
    right = right && outlet != outlets_.end() && outlet->second->peer() == position &&
            outlet->second->heard(static_cast<std::int64_t>(credit.messages),
                                  static_cast<std::int64_t>(credit.bytes));
  }
  if (right) return;
  lose(position, {ErrorKind::kLostPeers,
                  fmt::format("{} is lost: it gave back what it never had", peer.node())});
}

void Gate::take_parcel(std::size_t position, Lane lane, Parcel& parcel) {
  Peer& peer = *peers_[position];
  switch (peer.arrival(lane, parcel.sequence, static_cast<std::size_t>(parcel.message.bytes()))) {
    case Peer::Arrival::kNext:
      break;
    case Peer::Arrival::kAgain:
      return;
    case Peer::Arrival::kGap:
      cut(position, "packets were lost on the way");
      return;
  }
  accounts_due_[position]->store(true);
  if (parcel.cause) {
    take_back(position, parcel);
  } else {
    deliver(position, lane, parcel);
  }
}

// nullptr: nothing that this peer may send.
Origin* Gate::origin_of(std::size_t position, const Parcel& parcel) {
  if (parcel.link) {
    const auto inlet = inlets_.find(*parcel.link);
    if (inlet == inlets_.end() || inlet->second->RemoteOrigin::peer() != position) return nullptr;
    return inlet->second.get();
  }
  if (parcel.sender == kOutsideName) return outsiders_[position].get();
  const auto sender = senders_.find(parcel.sender);
  if (sender == senders_.end() || sender->second->peer() != position) return nullptr;
  return sender->second.get();
}

void Gate::deliver(std::size_t position, Lane lane, Parcel& parcel) {
  const std::string& node = peers_[position]->node();
  Origin* origin = origin_of(position, parcel);
  if (origin == nullptr) {
    lose(position, {ErrorKind::kLostPeers,
                    fmt::format("{} is lost: it sent '{}' in a name or along a link that is not "
                                "its own",
                                node, parcel.message.name())});
    return;
  }
  if (parcel.link) {
    RemoteInlet& inlet = *inlets_.at(*parcel.link);
    if (inlet.plan()->lane != lane || !inlet.take_in(parcel.message.bytes())) {
      lose(position, {ErrorKind::kLostPeers,
                      fmt::format("{} is lost: it sent '{}' without credit or in another lane",
                                  node, parcel.message.name())});
      return;
    }
    parcel.message.attach(inlet, true, inlet.newest_number());
    inlet.to().deliver(std::move(parcel.message), lane);
    return;
  }
  parcel.message.attach(*origin, false);
  Cell* target = core_.find_cell(parcel.target);
  if (target != nullptr) {
    target->deliver(std::move(parcel.message), Lane::kControl);
  } else {
    core_.return_to_sender(std::move(parcel.message),
                           {ErrorKind::kInternal, fmt::format("there is no actor {} on {}",
                                                              parcel.target, options_.node)});
  }
}

// A message of an actor here could not be delivered there.
void Gate::take_back(std::size_t position, Parcel& parcel) {
  Origin* origin = nullptr;
  const bool was_sent = peers_[position]->acknowledged(parcel.received);
  if (was_sent && parcel.link) {
    const auto outlet = outlets_.find(*parcel.link);
    if (outlet != outlets_.end() && outlet->second->peer() == position &&
        outlet->second->come_back(parcel.message.bytes())) {
      origin = outlet->second.get();
    }
  } else if (was_sent) {
    origin = core_.control_origin_of(parcel.target);
  }
  if (origin == nullptr) {
    lose(position, {ErrorKind::kLostPeers, fmt::format("{} is lost: it returned a message that was "
                                                       "never sent",
                                                       peers_[position]->node())});
    return;
  }
  parcel.message.attach(*origin, parcel.link.has_value());
  core_.return_to_sender(std::move(parcel.message), *parcel.cause);
}

}  // namespace troupe::runtime
