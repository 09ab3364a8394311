#pragma once

// Looks whether a running node still moves, and ends it when it does not. The plan's first node
// judges for all nodes: it asks them what they wait for before it ends the run.

#include <cstdint>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/progress_watch.h"
#include "runtime/timer_queue.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {

class NodeCore;

// For the thread that tends the node.
class NodeWatch {
 public:
  // `judges_all`: the node is the plan's first. The references outlive the watch.
  NodeWatch(NodeCore& core, const TimerQueue& timers, Log& log, Duration stuck_after,
            bool judges_all, TimePoint now);

  // Warns of a node that is slow, and ends one that is stuck: see NodeOptions::stuck_after.
  void look(TimePoint now);
  // When the verdict on a node that stays quiet would change.
  TimePoint next_look() const { return watch_.next_look(); }
  // When answers of other nodes are no longer waited for; TimePoint::max(): none are.
  TimePoint answers_due() const { return answers_due_; }

 private:
  Activity activity() const;
  void ask_all_nodes(TimePoint now);
  void judge_all_nodes(TimePoint now);
  void fail(std::string_view what, const WaitGraph& graph);

  NodeCore& core_;
  const TimerQueue& timers_;
  Log& log_;
  const Duration stuck_after_;
  const bool judges_all_;
  ProgressWatch watch_;
  std::int64_t progress_when_asked_ = 0;
  TimePoint answers_due_ = TimePoint::max();
};

}  // namespace troupe::runtime
