#pragma once

// One actor with all that belongs to it: its mailbox, links, timers and trace. The scheduler runs
// cells.

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/actor.h"
#include "runtime/base/log.h"
#include "runtime/node/cell_trace.h"
#include "runtime/node/link.h"
#include "runtime/node/mailbox.h"
#include "runtime/plan.h"
#include "runtime/scheduler.h"

namespace troupe::runtime {

class NodeCore;

// The origin of messages that no link carries: an actor's send_control, or the outside.
class ControlOrigin final : public Origin {
 public:
  ControlOrigin(ActorId sender, std::string name)
      : Origin(sender, std::move(name), "control",
               sender == kOutside ? 0 : TraceFlow::kWithinNode | (sender_number(sender) + 1)) {}
  void give_back(std::int64_t) override {}
  void count_queued(std::int64_t) override {}
  bool undelivered() override { return true; }

 private:
  static std::uint32_t sender_number(ActorId sender) {
    return static_cast<std::uint32_t>(sender.index);
  }
};

// A number that one thread raises and any thread reads.
class Count {
 public:
  void raise() { value_.store(value() + 1, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

class Cell final : public Task {
 public:
  // `core` outlives the cell.
  Cell(NodeCore& core, ActorId id, const ActorPlan& plan, int trace_records, const Log& log);

  ActorId id() const { return id_; }
  const ActorPlan& plan() const { return plan_; }
  ControlOrigin& control_origin() { return control_origin_; }
  CellTrace& trace() { return trace_; }
  // Before the node begins; the link leaves this cell, at the next port.
  void add_out(Outlet& link);
  std::size_t outs() const { return outs_.size(); }

  // Under the lock of the node's ActorTree, while the actor is not alive. Opens the mailbox; true:
  // the caller must enqueue the cell, once all that start together are open.
  bool open(std::unique_ptr<Actor> actor);
  // Destroys the actor and all that waits for it. Only when no thread runs the cell any more.
  void clear();

  // Any thread.
  void deliver(Message&& message, Lane lane);
  bool post(Signal&& signal);  // false: the actor is not alive

  // Running thread.
  bool run_slice(int limit) override;
  std::string_view name() const override { return plan_.name; }
  void flush_later(Inlet& link) { links_to_flush_.push_back(&link); }

  // Any thread.
  bool scheduled() const { return mailbox_.scheduled(); }
  bool in_handler() const { return in_handler_.load(std::memory_order_relaxed); }
  std::int64_t handled() const { return handled_.value(); }
  std::int64_t progress() const { return progress_.value(); }
  TraceSnapshot trace_snapshot() const { return trace_.snapshot(); }
  // Under the lock of the node's ActorTree: Actor::waiting_for(); nullopt when the cell is not
  // idle.
  std::optional<std::string> ask_waiting_for();

 private:
  friend class Context;

  bool handle_next();
  void handle(Signal& signal);
  void tell_child_ended(const ChildEnd& end);
  void end_actor();
  Error end_cause() const;

  NodeCore& core_;
  const ActorId id_;
  const ActorPlan plan_;
  Log log_;
  CellTrace trace_;
  Mailbox mailbox_;
  ControlOrigin control_origin_;
  std::vector<Outlet*> outs_;
  std::vector<std::string> out_names_;
  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> in_handler_{false};
  Count handled_;
  Count progress_;
  mutable std::mutex cause_mutex_;
  Error cause_;  // why messages to the ended actor come back

  // For the running thread alone.
  std::unique_ptr<Actor> actor_;
  Context context_;
  bool done_ = false;
  std::optional<Error> failure_;
  std::map<TimerId, TimePoint> timers_;
  std::vector<Inlet*> links_to_flush_;
  std::array<std::uint32_t, std::variant_size_v<Signal>> signal_traces_{};
};

// The cell whose handler this thread is running, nullptr between slices.
inline constinit thread_local Cell* running_cell = nullptr;

}  // namespace troupe::runtime
