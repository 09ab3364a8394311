#include "runtime/node/remote_links.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/node/node_core.h"

namespace troupe::runtime {
namespace {

std::string strange(std::string_view message) {
  return fmt::format("it sent '{}' in a name or along a link that is not its own", message);
}

}  // namespace

void RemoteLinks::add_peer() {
  outsiders_.push_back(
      std::make_unique<RemoteOrigin>(outsiders_.size(), std::string(kOutsideName), "control"));
  accounts_due_.push_back(std::make_unique<std::atomic<bool>>(false));
  inlets_from_.emplace_back();
  here_.push_back(std::make_unique<std::atomic<bool>>(false));
}

Outlet& RemoteLinks::add_outlet(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port,
                                std::size_t peer) {
  auto& outlet = outlets_[link];
  outlet = std::make_unique<RemoteOutlet>(*this, link, peer, plan, from, port);
  return *outlet;
}

void RemoteLinks::add_inlet(std::uint32_t link, const LinkPlan& plan, std::size_t peer, Cell& to) {
  auto& inlet = inlets_[link] = std::make_unique<RemoteInlet>(*this, link, peer, plan, to);
  inlets_from_[peer].push_back(inlet.get());
}

void RemoteLinks::add_actor(const std::string& actor, std::size_t peer) {
  actors_.emplace(actor, peer);
  senders_.emplace(actor, std::make_unique<RemoteOrigin>(peer, actor, "control"));
}

void RemoteLinks::post(Outgoing outgoing) {
  bool first = false;
  {
    const std::scoped_lock lock(posted_mutex_);
    first = posted_.messages.empty();
    posted_.messages.push_back(std::move(outgoing));
  }
  // The gate takes all at once, so the first one alone wakes it.
  if (first) wire_.wake();
}

bool RemoteLinks::post_control(const std::string& actor, Message& message) {
  const auto found = actors_.find(actor);
  if (found == actors_.end()) return false;
  post({found->second, nullptr, actor, {}, std::move(message)});
  return true;
}

void RemoteLinks::send_back(Message&& message, const Error& cause) {
  const std::size_t peer = static_cast<RemoteOrigin*>(message.origin())->peer();
  post({peer, nullptr, {}, cause, std::move(message)});
}

void RemoteLinks::account_due(std::size_t peer) {
  if (make_account_due(peer)) wire_.wake();
}

bool RemoteLinks::make_account_due(std::size_t peer) {
  if (accounts_due_[peer]->exchange(true)) return false;
  const std::scoped_lock lock(posted_mutex_);
  posted_.accounts.push_back(peer);
  return true;
}

void RemoteLinks::wish(PeerWish wish) {
  {
    const std::scoped_lock lock(posted_mutex_);
    posted_.wishes.push_back(std::move(wish));
  }
  wire_.wake();
}

Posted RemoteLinks::take_posted() {
  const std::scoped_lock lock(posted_mutex_);
  return std::exchange(posted_, {});
}

// A message goes along its link, back to where it came from, or past all links to an actor by its
// name.
std::optional<Sealed> RemoteLinks::seal(Outgoing& outgoing, const LaneCounts& received) {
  Sealed sealed;
  Envelope& envelope = sealed.envelope;
  if (outgoing.link != nullptr) {
    outgoing.link->leaves(outgoing.message.number());
    envelope.link = outgoing.link->link();
    sealed.lane = outgoing.link->plan().lane;
  } else if (outgoing.cause) {
    auto& origin = static_cast<RemoteOrigin&>(*outgoing.message.origin());
    if (origin.plan() != nullptr) {
      RemoteInlet& inlet = *inlets_.at(origin.link());
      if (inlet.holds_of_another()) return std::nullopt;
      envelope.link = origin.link();
      sealed.lane = origin.plan()->lane;
      // The credit goes back with the message, so letting go of the message here must not return it
      // once more.
      inlet.send_back(outgoing.message.bytes());
      outgoing.message.holds_credit_ = false;
    } else {
      envelope.target = origin.sender_name();
    }
    envelope.cause = std::move(outgoing.cause);
    envelope.received = received;
  } else {
    envelope.sender = outgoing.message.sender_name();
    envelope.target = std::move(outgoing.target);
  }
  envelope.message = std::move(outgoing.message);
  return sealed;
}

void RemoteLinks::bounce(Outgoing& outgoing, const std::string& node, const Error& cause) {
  if (outgoing.cause) {
    log_.debug(fmt::format("'{}' from {} is lost, as both ends have ended", outgoing.message.name(),
                           node));
    return;
  }
  if (outgoing.link != nullptr) outgoing.link->come_back(outgoing.message.bytes());
  core_.return_to_sender(std::move(outgoing.message), cause);
}

void RemoteLinks::return_kept(Message message, const Error& cause) {
  if (message.holds_credit()) {
    static_cast<RemoteOutlet*>(message.origin())->come_back(message.bytes());
  }
  core_.return_to_sender(std::move(message), cause);
}

// Every envelope makes an account due, so that it is acknowledged although no credit may have come
// back. The inlet counts by itself what its sender may have out: a message beyond that breaks the
// rules.
std::string RemoteLinks::deliver(std::size_t peer, Lane lane, Envelope& envelope) {
  make_account_due(peer);
  if (envelope.cause) return deliver_back(peer, envelope);
  const std::string name(envelope.message.name());
  if (envelope.link) {
    const auto found = inlets_.find(*envelope.link);
    if (found == inlets_.end() || found->second->RemoteOrigin::peer() != peer) {
      return strange(name);
    }
    RemoteInlet& inlet = *found->second;
    if (inlet.plan()->lane != lane || !inlet.take_in(envelope.message.bytes())) {
      return fmt::format("it sent '{}' without credit or in another lane", name);
    }
    envelope.message.attach(inlet, true, inlet.newest_number());
    inlet.to().deliver(std::move(envelope.message), lane);
    return "";
  }
  // Past all links the name of the sender must be that of an actor of this very peer.
  RemoteOrigin* origin = outsiders_[peer].get();
  if (envelope.sender != kOutsideName) {
    const auto sender = senders_.find(envelope.sender);
    if (sender == senders_.end() || sender->second->peer() != peer) return strange(name);
    origin = sender->second.get();
  }
  envelope.message.attach(*origin, false);
  if (Cell* target = core_.wiring().find(envelope.target)) {
    target->deliver(std::move(envelope.message), Lane::kControl);
  } else {
    core_.return_to_sender(
        std::move(envelope.message),
        {ErrorKind::kInternal, fmt::format("there is no actor {} on {}", envelope.target, node_)});
  }
  return "";
}

// A message of an actor here could not be delivered there.
std::string RemoteLinks::deliver_back(std::size_t peer, Envelope& envelope) {
  Origin* origin = nullptr;
  if (envelope.link) {
    const auto outlet = outlets_.find(*envelope.link);
    if (outlet != outlets_.end() && outlet->second->peer() == peer &&
        outlet->second->come_back(envelope.message.bytes())) {
      origin = outlet->second.get();
    }
  } else {
    origin = core_.control_origin_of(envelope.target);
  }
  if (origin == nullptr) return "it returned a message that was never sent";
  envelope.message.attach(*origin, envelope.link.has_value());
  core_.return_to_sender(std::move(envelope.message), *envelope.cause);
  return "";
}

std::optional<std::vector<LinkCredit>> RemoteLinks::account_for(std::size_t peer) {
  if (!accounts_due_[peer]->exchange(false)) return std::nullopt;
  std::vector<LinkCredit> credits;
  for (const RemoteInlet* inlet : inlets_from_[peer]) {
    const auto [messages, bytes] = inlet->given_back();
    std::uint64_t& told = credits_told_[inlet->link()];
    if (told == static_cast<std::uint64_t>(messages)) continue;
    told = static_cast<std::uint64_t>(messages);
    credits.push_back({inlet->link(), told, static_cast<std::uint64_t>(bytes)});
  }
  return credits;
}

// A peer that was welcomed by this node waits for a word before it sends, which the account is.
void RemoteLinks::came_up(std::size_t peer) {
  here_[peer]->store(true);
  make_account_due(peer);
  for (const RemoteInlet* inlet : inlets_from_[peer]) credits_told_.erase(inlet->link());
}

bool RemoteLinks::heard(std::size_t peer, const std::vector<LinkCredit>& credits) {
  for (const LinkCredit& credit : credits) {
    const auto outlet = outlets_.find(credit.link);
    if (outlet == outlets_.end() || outlet->second->peer() != peer ||
        !outlet->second->heard(static_cast<std::int64_t>(credit.messages),
                               static_cast<std::int64_t>(credit.bytes))) {
      return false;
    }
  }
  return true;
}

void RemoteLinks::forget(std::size_t peer) {
  for (const auto& [link, outlet] : outlets_) {
    if (outlet->peer() == peer) outlet->forget();
  }
}

void RemoteLinks::begin_anew(std::size_t peer) {
  for (const auto& [link, outlet] : outlets_) {
    if (outlet->peer() == peer) outlet->begin_anew();
  }
  for (RemoteInlet* inlet : inlets_from_[peer]) inlet->begin_anew();
}

// The graph has the node's own actors so far. An actor elsewhere is added by its name alone, and
// merge() puts the description by its own node in its place.
void RemoteLinks::add_to(WaitGraph& graph) const {
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
    const std::size_t from = position_of(stats.plan.from);
    graph.links.push_back(wait_of(stats, from, position_of(stats.plan.to), sender_waits));
  };
  for (const auto& [link, outlet] : outlets_) {
    if (*here_[outlet->peer()]) add(outlet->sending_stats(), outlet->sender_waits());
  }
  for (const auto& [link, inlet] : inlets_) {
    if (*here_[inlet->RemoteOrigin::peer()]) add(inlet->stats(), false);
  }
}

std::vector<LinkStats> RemoteLinks::stats() const {
  std::vector<LinkStats> all;
  for (const auto& [link, outlet] : outlets_) all.push_back(outlet->sending_stats());
  for (const auto& [link, inlet] : inlets_) all.push_back(inlet->stats());
  return all;
}

// Each end numbers messages in its own way, and shared_number() is the one that both agree on. A
// flow without it is dropped: an arrow would join two different messages.
void RemoteLinks::settle_flows(TraceSnapshot& trace) const {
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
