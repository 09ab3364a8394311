#pragma once

// The ownership tree of a node: pure decisions about which actors must stop, start or be told,
// without threads or mailboxes. The node calls it under one lock and carries out the orders it
// returns.
//
//   running --ask_stop--> stopping --gone--> closing --(last child ended)--> ended --restart-->
//   running running ----------------------gone-----> closing
//
// Closing: the actor itself is gone and its children are being stopped. The root follows the same
// rules without an owner: its end is the end of the tree.

#include <optional>
#include <string>
#include <vector>

#include "runtime/actor.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/plan.h"

namespace troupe::runtime {

class Supervisor {
 public:
  enum class State : std::uint8_t { kRunning, kStopping, kClosing, kEnded };

  // The node's next actions, in this order.
  struct Order {
    enum class Kind : std::uint8_t {
      kStop,   // tell `actor` to stop
      kTell,   // tell `actor` that a child ended as `end` says
      kStart,  // make `actor` anew and start it
    };
    Kind kind;
    ActorId actor;
    ChildEnd end;  // of kTell
  };
  using Orders = std::vector<Order>;

  // All actors running. The plan has passed check(). `patience`: from ask_stop to overdue.
  Supervisor(const Plan& plan, Duration patience);

  // Nothing happens when the actor is not running.
  Orders ask_stop(ActorId actor, TimePoint now);

  // The actor finished (no error) or failed and is destroyed. Its children that run are stopped;
  // with the last of them it ends. If it has no error of its own, it takes the error of a child
  // whose end no owner decided about, so that no failure is lost.
  Orders gone(ActorId actor, std::optional<Error> error, TimePoint now);
  // The owner ended without seeing this end of a child.
  void unseen(ActorId owner, const ChildEnd& end);

  // An owner's decision about a child that has ended: it and all below it run again. Refused (no
  // orders) unless the owner is running and the child has ended.
  Orders restart(ActorId owner, ActorId child);

  State state(ActorId actor) const { return entries_[index(actor)].state; }
  bool ended() const { return entries_[index(root_)].state == State::kEnded; }
  // The root's error, once it has ended.
  const std::optional<Error>& error() const { return entries_[index(root_)].error; }

  // The shape of the tree, which never changes: needs no lock. Actors below `actor`, owners before
  // what they own, itself first.
  std::vector<ActorId> subtree(ActorId actor) const;
  int children(ActorId owner) const {
    return static_cast<int>(entries_[index(owner)].children.size());
  }
  // The child of that name; kOutside when there is none.
  ActorId child(ActorId owner, std::string_view name) const;
  ActorId root() const { return root_; }

  // Stopping actors whose patience has run out, and when the next one's will (TimePoint::max() if
  // none is stopping).
  std::vector<ActorId> overdue(TimePoint now) const;
  TimePoint next_overdue() const;
  // Actors that have not ended, in the plan's order.
  std::vector<ActorId> alive() const;

 private:
  struct Entry {
    std::string name;
    ActorId owner;
    std::vector<ActorId> children;
    State state = State::kRunning;
    std::optional<Error> error;
    TimePoint stop_by = TimePoint::max();
    int restarts = 0;
  };

  static std::size_t index(ActorId actor) { return static_cast<std::size_t>(actor.index); }
  Entry& entry(ActorId actor) { return entries_[index(actor)]; }
  bool children_ended(const Entry& entry) const;
  void end(ActorId actor, Orders& orders);

  std::vector<Entry> entries_;
  ActorId root_;
  Duration patience_;
};

}  // namespace troupe::runtime
