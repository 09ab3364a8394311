#include "runtime/supervisor.h"

#include <algorithm>

namespace troupe::runtime {

Supervisor::Supervisor(const Plan& plan, Duration patience) : patience_(patience) {
  for (const ActorPlan& actor : plan.actors) entries_.emplace_back().name = actor.name;
  for (std::size_t i = 0; i < plan.actors.size(); ++i) {
    const ActorId actor{static_cast<std::int32_t>(i)};
    const auto owner = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& candidate) {
      return candidate.name == plan.actors[i].owner;
    });
    if (owner == entries_.end()) {
      root_ = actor;
    } else {
      owner->children.push_back(actor);
      entries_[i].owner = ActorId{static_cast<std::int32_t>(owner - entries_.begin())};
    }
  }
  CHECK(root_ != kOutside, "a plan without a root");
}

Supervisor::Orders Supervisor::ask_stop(ActorId actor, TimePoint now) {
  Entry& stopped = entry(actor);
  if (stopped.state != State::kRunning) return {};
  stopped.state = State::kStopping;
  stopped.stop_by = now + patience_;
  return {{Order::Kind::kStop, actor, {}}};
}

// An actor that is gone is not ended: it is closing until its last child has ended. Its own error
// counts before that of any child.
Supervisor::Orders Supervisor::gone(ActorId actor, std::optional<Error> error, TimePoint now) {
  Entry& leaving = entry(actor);
  CHECK(leaving.state == State::kRunning || leaving.state == State::kStopping,
        "an actor ended twice");
  leaving.state = State::kClosing;
  leaving.stop_by = TimePoint::max();
  if (error.has_value()) leaving.error = std::move(error);
  Orders orders;
  for (const ActorId child : leaving.children) {
    for (Order& order : ask_stop(child, now)) orders.push_back(std::move(order));
  }
  if (children_ended(leaving)) end(actor, orders);
  return orders;
}

void Supervisor::unseen(ActorId owner, const ChildEnd& end) {
  Entry& entry_of_owner = entry(owner);
  if (!entry_of_owner.error.has_value()) entry_of_owner.error = end.error;
}

bool Supervisor::children_ended(const Entry& entry) const {
  return std::all_of(entry.children.begin(), entry.children.end(),
                     [&](ActorId child) { return state(child) == State::kEnded; });
}

// A running owner is told and decides. A closing owner cannot decide any more: it takes the error
// over and may end itself, which can go up to the root.
void Supervisor::end(ActorId actor, Orders& orders) {
  Entry& ended = entry(actor);
  ended.state = State::kEnded;
  if (actor == root_) return;
  Entry& owner = entry(ended.owner);
  ChildEnd end_of_child{actor, ended.name, ended.error, ended.restarts};
  if (owner.state == State::kClosing) {
    unseen(ended.owner, end_of_child);
    if (children_ended(owner)) end(ended.owner, orders);
  } else {
    orders.push_back({Order::Kind::kTell, ended.owner, std::move(end_of_child)});
  }
}

Supervisor::Orders Supervisor::restart(ActorId owner, ActorId child) {
  if (state(owner) != State::kRunning || state(child) != State::kEnded) return {};
  CHECK(entry(child).owner == owner, "only its owner restarts an actor");
  ++entry(child).restarts;
  Orders orders;
  for (const ActorId actor : subtree(child)) {
    entry(actor).state = State::kRunning;
    entry(actor).error.reset();
    orders.push_back({Order::Kind::kStart, actor, {}});
  }
  return orders;
}

std::vector<ActorId> Supervisor::subtree(ActorId actor) const {
  std::vector<ActorId> found{actor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Entry& above = entries_[index(found[i])];
    found.insert(found.end(), above.children.begin(), above.children.end());
  }
  return found;
}

ActorId Supervisor::child(ActorId owner, std::string_view name) const {
  for (const ActorId child : entries_[index(owner)].children) {
    if (entries_[index(child)].name == name) return child;
  }
  return kOutside;
}

std::vector<ActorId> Supervisor::overdue(TimePoint now) const {
  std::vector<ActorId> late;
  for (const ActorId actor : alive()) {
    if (state(actor) == State::kStopping && entries_[index(actor)].stop_by <= now) {
      late.push_back(actor);
    }
  }
  return late;
}

TimePoint Supervisor::next_overdue() const {
  TimePoint next = TimePoint::max();
  for (const Entry& entry : entries_) next = std::min(next, entry.stop_by);
  return next;
}

std::vector<ActorId> Supervisor::alive() const {
  std::vector<ActorId> alive;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].state != State::kEnded) alive.push_back({static_cast<std::int32_t>(i)});
  }
  return alive;
}

}  // namespace troupe::runtime
