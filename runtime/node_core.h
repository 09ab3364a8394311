#pragma once

// What a Node holds: the cells and links of its plan, and the rare, locked decisions about them.
// Kept apart from Node so that an abandoned thread can keep it alive.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/cell.h"
#include "runtime/link.h"
#include "runtime/node.h"
#include "runtime/progress_watch.h"
#include "runtime/supervisor.h"
#include "runtime/thread_scheduler.h"
#include "runtime/timer_queue.h"
#include "runtime/transport/gate.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {

class NodeCore {
 public:
  // `scheduler` null: one of its own, with threads. `uplink` null: there are no other nodes.
  NodeCore(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
           Log& log, Scheduler* scheduler, const Uplink* uplink);
  ~NodeCore();

  const Clock& clock() const { return clock_; }
  Scheduler& scheduler() { return *scheduler_; }
  bool halted() const { return halted_.load(std::memory_order_relaxed); }
  // Begun and not ended. The tending thread.
  bool running() const { return phase_ == Phase::kBegun; }

  // See Node.
  void begin(const std::shared_ptr<NodeCore>& self);
  bool tend();
  TimePoint next_due() const;
  NodeEnd end();
  void request_stop();
  void send_control_from_outside(std::string_view actor, Message message);
  WaitGraph wait_graph() const;
  std::vector<LinkStats> link_stats() const;
  std::vector<ActorStats> actor_stats() const;
  std::vector<ActorTrace> traces() const;

  Gate* gate() const { return gate_.get(); }

  // For the gate, on its thread.
  Cell* find_cell(const std::string& actor) const;
  // What an actor here sends past all links comes from; nullptr: no such actor.
  Origin* control_origin_of(const std::string& actor);
  void tell_root(Message message);
  std::int64_t own_progress() const;
  void gate_closed() { scheduler_->wake(); }
  void graph_arrived() { scheduler_->wake(); }

  // For cells, on their threads.
  void send_control(Origin& origin, std::string_view actor, Message message);
  // The message holds on to its credit; `cause` says why its target did not take it.
  void return_to_sender(Message message, const Error& cause);
  TimerId add_timer(ActorId actor, TimePoint due);
  void remove_timer(TimerId id, TimePoint due) { timers_.remove(id, due); }
  int children(ActorId owner) const { return supervisor_.children(owner); }
  void stop_child(ActorId owner, std::string_view name);
  void restart_child(ActorId owner, ActorId child);
  // The cell's actor is destroyed. `unseen`: ends of children it was not told of any more.
  void actor_gone(ActorId actor, std::optional<Error> error, const std::vector<ChildEnd>& unseen);

 private:
  Cell& cell(ActorId actor) const { return *cells_[static_cast<std::size_t>(actor.index)]; }
  void wire(const Plan& whole);
  // `number`: its position in the whole plan. `nodes`: see actor_nodes().
  using ActorNodes = std::unordered_map<std::string_view, std::string_view>;
  void wire_link(const LinkPlan& link, std::uint32_t number, const ActorNodes& nodes);
  Result<void> start_threads(const std::shared_ptr<NodeCore>& self);
  void close_gate();
  std::unique_ptr<Actor> make_actor(ActorId actor);
  void carry_out(Supervisor::Orders orders);  // under tree_mutex_
  void fire_timers(TimePoint now);
  bool quiet() const;
  Activity activity() const;
  void watch(TimePoint now);
  void ask_all_nodes(TimePoint now);
  void watch_all_nodes(TimePoint now);
  void fail_stuck(std::string_view what);
  void fail_stuck(std::string_view what, const WaitGraph& graph);
  void give_up(std::string_view why, const WaitGraph* graph = nullptr);
  void note_handled(TimePoint now);

  const Plan plan_;  // what of it is on this node
  const ActorFactory factory_;
  const NodeOptions options_;
  const Clock& clock_;
  Log log_;
  std::unordered_map<std::string, ActorId> ids_;
  std::vector<std::unique_ptr<Cell>> cells_;
  std::vector<std::unique_ptr<Link>> links_;
  std::unique_ptr<Gate> gate_;  // none: there are no other nodes
  bool gate_has_thread_ = false;
  bool first_node_ = true;  // of the plan: it watches over the progress of all
  ControlOrigin outside_;
  TimerQueue timers_;
  std::unique_ptr<ThreadScheduler> own_scheduler_;
  Scheduler* scheduler_;
  std::atomic<bool> halted_{false};
  std::atomic<bool> give_up_asked_{false};

  std::mutex factory_mutex_;  // taken before tree_mutex_ where both are

  // Guards what follows. Mailbox and scheduler locks may be taken under it, never around it.
  mutable std::mutex tree_mutex_;
  Supervisor supervisor_;
  std::vector<std::unique_ptr<Actor>> made_;  // per actor: made, not yet started
  bool stop_requested_ = false;
  std::optional<Error> error_;  // of the node itself: deadlock, actors given up
  std::vector<std::string> unstopped_;
  // Per actor: handlers run when it was last seen to have run another one, and when that was.
  std::vector<std::pair<std::int64_t, TimePoint>> last_handled_;

  // The tending thread's.
  std::optional<ProgressWatch> watch_;
  std::thread gate_thread_;
  std::int64_t progress_when_asked_ = 0;
  TimePoint graphs_due_ = TimePoint::max();  // when a stuck run is judged by what has come in
  enum class Phase { kMade, kBegun, kEnded } phase_ = Phase::kMade;
};

}  // namespace troupe::runtime
