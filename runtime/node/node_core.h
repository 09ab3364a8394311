#pragma once

// The inside of a Node: its wiring, its tree of actors, its gate, timers and watch. Kept apart from
// Node so that an abandoned thread can keep it alive.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/node/actor_tree.h"
#include "runtime/node/gate.h"
#include "runtime/node/node.h"
#include "runtime/node/node_watch.h"
#include "runtime/node/node_wiring.h"
#include "runtime/thread_scheduler.h"
#include "runtime/timer_queue.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {

class NodeCore final : public GateHost {
 public:
  // `scheduler` null: one of its own, with threads. `uplink` null: there are no other nodes.
  NodeCore(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
           Log& log, Scheduler* scheduler, const Uplink* uplink);
  ~NodeCore() override;

  const Clock& clock() const { return clock_; }
  Scheduler& scheduler() { return *scheduler_; }
  const NodeWiring& wiring() const { return wiring_; }
  ActorTree& tree() { return *tree_; }
  Gate* gate() const { return gate_.get(); }  // null: there are no other nodes

  // See Node. The tending thread.
  void begin(const std::shared_ptr<NodeCore>& self);
  bool tend();
  TimePoint next_due() const;
  NodeEnd end();
  bool running() const { return phase_ == Phase::kBegun; }

  // Any thread.
  void send_control_from_outside(std::string_view actor, Message message);
  WaitGraph wait_graph() const override;

  // For the gate, on its thread; see GateHost.
  Cell* find_cell(const std::string& actor) const override { return wiring_.find(actor); }
  Origin* control_origin_of(const std::string& actor) override;
  void tell_root(Message message) override;
  std::int64_t own_progress() const override { return wiring_.progress(); }
  void gate_closed() override { scheduler_->wake(); }
  void graph_arrived() override { scheduler_->wake(); }

  // For cells, on their threads.
  void send_control(Origin& origin, std::string_view actor, Message message);
  // Also for the gate: see GateHost.
  void return_to_sender(Message message, const Error& cause) override;
  TimerId add_timer(ActorId actor, TimePoint due);
  void remove_timer(TimerId id, TimePoint due) { timers_.remove(id, due); }

 private:
  Result<void> start_threads(const std::shared_ptr<NodeCore>& self);

  const Plan plan_;  // the part that is on this node
  const NodeOptions options_;
  const Clock& clock_;
  Log log_;
  NodeWiring wiring_;
  std::unique_ptr<Gate> gate_;
  bool gate_has_thread_ = false;
  bool judges_all_ = true;  // it is the plan's first node
  ControlOrigin outside_;
  TimerQueue timers_;
  std::unique_ptr<ThreadScheduler> own_scheduler_;
  Scheduler* scheduler_;
  std::optional<ActorTree> tree_;  // always there after construction

  // For the tending thread alone.
  std::optional<NodeWatch> watch_;
  std::thread gate_thread_;
  enum class Phase { kMade, kBegun, kEnded } phase_ = Phase::kMade;
};

}  // namespace troupe::runtime
