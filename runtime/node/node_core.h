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

class NodeCore final {
 public:
  // `scheduler` null: one of its own, with threads. `uplink` null: there are no other nodes.
  NodeCore(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
           Log& log, Scheduler* scheduler, const Uplink* uplink);
  ~NodeCore();
  NodeCore(const NodeCore&) = delete;
  NodeCore& operator=(const NodeCore&) = delete;

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
  WaitGraph wait_graph() const;

  // For the gate, on its thread.
  // The origin of what that actor sends past all links; null: there is no such actor here.
  Origin* control_origin_of(const std::string& actor);
  void tell_root(Message message);

  // For cells, on their threads.
  void send_control(Origin& origin, std::string_view actor, Message message);
  // Also for the gate. The message holds on to its credit; `cause` says why its target did not take
  // it.
  void return_to_sender(Message message, const Error& cause);
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
