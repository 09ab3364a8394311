#pragma once

// The lives of a node's actors: starts, stops, restarts and gives up on them, as its Supervisor
// decides. All of it is rare and happens under one lock.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/node/node.h"
#include "runtime/node/node_wiring.h"
#include "runtime/scheduler.h"
#include "runtime/supervisor.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {

class ActorTree {
 public:
  // Makes every actor of `plan`, which is this node's part. The references outlive the tree.
  ActorTree(const Plan& plan, const NodeWiring& wiring, ActorFactory factory, Duration patience,
            const Clock& clock, const Log& log, Scheduler& scheduler);

  // Once. Starts all actors, or none if `start_threads` fails: that is then the node's error.
  void begin(const std::function<runtime::Result<void>()>& start_threads);
  // Returns when begin() has, so that messages from outside find every actor open.
  void wait_until_begun() const { const std::scoped_lock lock(mutex_); }

  // For cells, on their threads.
  int children(ActorId owner) const { return supervisor_.children(owner); }
  void stop_child(ActorId owner, std::string_view name);
  void restart_child(ActorId owner, ActorId child);
  // The cell's actor is destroyed. `unseen`: ends of children it was not told of any more.
  void actor_gone(ActorId actor, std::optional<Error> error, const std::vector<ChildEnd>& unseen);

  // Any thread.
  bool halted() const { return halted_.load(std::memory_order_relaxed); }
  void request_stop();                       // see Node
  std::optional<ActorId> open_root() const;  // none: the root's actor is gone
  std::vector<ActorStats> actor_stats() const;
  void add_actors(WaitGraph& graph) const;

  // For the thread that tends the node.
  enum class Look : std::uint8_t { kGoesOn, kOverdue, kEnded };
  Look look(TimePoint now);
  TimePoint next_overdue() const;
  // After kOverdue. False: all actors have ended in the meantime.
  bool give_up_overdue(const WaitGraph& graph);
  // The node is stuck: asks everyone to stop. `timers_pending`: a stop may still come to its end.
  void fail_stuck(std::string_view what, const WaitGraph& graph, bool timers_pending);
  // Gives up whatever has not ended. True: all had. Afterwards no actor is asked for anything.
  bool end(NodeEnd& end);

 private:
  std::unique_ptr<Actor> make_actor(ActorId actor);
  void carry_out(Supervisor::Orders orders);  // under mutex_, like all below
  void give_up(std::string_view why, const WaitGraph* graph = nullptr);
  void note_handled(TimePoint now);

  const NodeWiring& wiring_;
  const ActorFactory factory_;
  const Duration patience_;
  const Clock& clock_;
  Log log_;
  Scheduler& scheduler_;
  std::atomic<bool> halted_{false};

  std::mutex factory_mutex_;  // taken before mutex_ where both are

  // Guards what follows. Mailbox and scheduler locks may be taken under it, never around it.
  mutable std::mutex mutex_;
  Supervisor supervisor_;
  std::vector<std::unique_ptr<Actor>> made_;  // per actor: made, not yet started
  bool stop_requested_ = false;
  bool give_up_asked_ = false;
  std::optional<Error> error_;  // of the node itself: deadlock, actors given up
  std::vector<std::string> unstopped_;
  // Per actor: handlers run when it was last seen to have run another one, and when that was.
  std::vector<std::pair<std::int64_t, TimePoint>> last_handled_;
};

}  // namespace troupe::runtime
