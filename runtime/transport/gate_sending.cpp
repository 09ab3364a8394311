// The part of the Gate that sends what actors have posted, and takes back what could not be sent.

#include <utility>

#include <fmt/format.h>

#include "runtime/node_core.h"
#include "runtime/transport/gate.h"

namespace troupe::runtime {

void Gate::push(Outgoing outgoing) {
  bool first = false;
  {
    const std::scoped_lock lock(outgoing_mutex_);
    first = outgoing_.empty();
    outgoing_.push_back(std::move(outgoing));
  }
  if (first) wake();
}

void Gate::post(RemoteOutlet& link, Message&& message) {
  Outgoing outgoing;
  outgoing.peer = link.peer();
  outgoing.link = &link;
  outgoing.message = std::move(message);
  push(std::move(outgoing));
}

bool Gate::post_control(const std::string& actor, Message& message) {
  const auto found = actors_.find(actor);
  if (found == actors_.end()) return false;
  Outgoing outgoing;
  outgoing.peer = found->second;
  outgoing.target = actor;
  outgoing.message = std::move(message);
  push(std::move(outgoing));
  return true;
}

void Gate::send_back(Message&& message, const Error& cause) {
  Outgoing outgoing;
  outgoing.peer = static_cast<RemoteOrigin*>(message.origin())->peer();
  outgoing.cause = cause;
  outgoing.message = std::move(message);
  push(std::move(outgoing));
}

void Gate::account_due(std::size_t peer) {
  if (!accounts_due_[peer]->exchange(true)) wake();
}

void Gate::take_outgoing() {
  {
    const std::scoped_lock lock(outgoing_mutex_);
    taken_.swap(outgoing_);
  }
  for (Outgoing& outgoing : taken_) send_out(outgoing);
  taken_.clear();
}

void Gate::send_out(Outgoing& outgoing) {
  Peer& peer = *peers_[outgoing.peer];
  if (outgoing.link != nullptr) outgoing.link->gone_out(outgoing.message.bytes());
  if (peer.over() || peer.state() == Peer::State::kAway) {
    bounce(outgoing);
    return;
  }
  Parcel parcel;
  Lane lane = Lane::kControl;
  if (outgoing.link != nullptr) {
    outgoing.link->leaves(outgoing.message.number());
    parcel.link = outgoing.link->link();
    lane = outgoing.link->plan().lane;
  } else if (outgoing.cause) {
    auto& origin = static_cast<RemoteOrigin&>(*outgoing.message.origin());
    if (origin.plan() != nullptr) {
      RemoteInlet& inlet = *inlets_.at(origin.link());
      // Whoever sent it is not there any more.
      if (inlet.holds_of_another()) return;
      parcel.link = origin.link();
      lane = origin.plan()->lane;
      inlet.send_back(outgoing.message.bytes());
      outgoing.message.holds_credit_ = false;
    } else {
      parcel.target = origin.sender_name();
    }
    parcel.cause = std::move(outgoing.cause);
    parcel.received = peer.received();
  } else {
    parcel.sender = outgoing.message.sender_name();
    parcel.target = std::move(outgoing.target);
  }
  parcel.message = std::move(outgoing.message);
  const bool returned = parcel.cause.has_value();
  send_parcel(peer, lane, std::move(parcel), returned);
}

void Gate::send_parcel(Peer& peer, Lane lane, Parcel parcel, bool returned) {
  parcel.sequence = peer.next_sequence(lane);
  Packet packet = pack(parcel, types_);
  // What came from elsewhere is not kept as a message: nobody here would take it back.
  Message message = returned ? Message() : std::move(parcel.message);
  const Packet& kept = peer.keep(lane, {std::move(packet), std::move(message)});
  if (peer.ready) wire_.send(*peer.connection, lane, kept);
}

void Gate::send_account(std::size_t position) {
  Peer& peer = *peers_[position];
  Account account;
  account.received = peer.received();
  for (const auto& [link, inlet] : inlets_) {
    if (inlet->RemoteOrigin::peer() != position) continue;
    const auto [messages, bytes] = inlet->given_back();
    auto& told = credits_told_[link];
    if (told == static_cast<std::uint64_t>(messages)) continue;
    told = static_cast<std::uint64_t>(messages);
    account.credits.push_back({link, told, static_cast<std::uint64_t>(bytes)});
  }
  wire_.send(*peer.connection, Lane::kControl, pack(account));
}

// To a peer that is over, or away.
void Gate::bounce(Outgoing& outgoing) {
  const Peer& peer = *peers_[outgoing.peer];
  if (outgoing.cause) {
    log_.debug(fmt::format("'{}' from {} is lost, as both ends have ended", outgoing.message.name(),
                           peer.node()));
    return;
  }
  if (outgoing.link != nullptr) outgoing.link->come_back(outgoing.message.bytes());
  core_.return_to_sender(std::move(outgoing.message), peer.end());
}

// What the peer never acknowledged goes back to its senders. What it held gives its credit back.
void Gate::return_kept(std::size_t position) {
  Peer& peer = *peers_[position];
  for (const Lane lane : {Lane::kControl, Lane::kData, Lane::kMetrics}) {
    for (Peer::Kept& kept : std::exchange(peer.kept(lane), {})) {
      if (kept.message.empty()) continue;
      if (kept.message.holds_credit()) {
        static_cast<RemoteOutlet*>(kept.message.origin())->come_back(kept.message.bytes());
      }
      core_.return_to_sender(std::move(kept.message), peer.end());
    }
  }
  for (const auto& [link, outlet] : outlets_) {
    if (outlet->peer() == position) outlet->forget();
  }
}

}  // namespace troupe::runtime
