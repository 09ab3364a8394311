#include "runtime/node/node_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/node/node_core.h"

namespace troupe::runtime {
namespace {

// How long the answers of other nodes are waited for.
constexpr std::chrono::seconds kGraphPatience{2};
// With several nodes, a handler that runs this many times stuck_after is taken to hang. Without
// this limit one process that hangs and stays alive would hold up all others for good.
constexpr int kSlowHandlers = 8;
// The setting that people change stuck_after with.
constexpr std::string_view kSetting = "(cluster.failure.stuck_after)";

// None: no handler runs anywhere.
std::optional<Duration> longest_handler(const WaitGraph& graph) {
  std::optional<Duration> longest;
  for (const ActorWait& actor : graph.actors) {
    if (actor.activity != ActorWait::Activity::kRunning) continue;
    longest = std::max(longest.value_or(actor.running_for), actor.running_for);
  }
  return longest;
}

}  // namespace

NodeWatch::NodeWatch(NodeCore& core, const TimerQueue& timers, Log& log, Duration stuck_after,
                     bool judges_all, TimePoint now)
    : core_(core),
      timers_(timers),
      log_(log),
      stuck_after_(stuck_after),
      judges_all_(judges_all),
      watch_(stuck_after, now) {}

Activity NodeWatch::activity() const {
  Activity activity;
  activity.quiet = core_.wiring().quiet();
  // A timer that fires is taken out by this same thread, so none can hide between the two lines.
  activity.timers_pending = timers_.next_due() != TimerQueue::kNever;
  activity.progress = core_.wiring().progress();
  if (core_.gate()) {
    // A message of another node can always move this one.
    activity.timers_pending = true;
    activity.progress += core_.gate()->peers_progress();
  }
  return activity;
}

// A node with others is in no deadlock by itself, since a message from elsewhere may always come.
// It is stuck at most, and then the plan's first node asks all of them. A node alone fails at once.
void NodeWatch::look(TimePoint now) {
  if (core_.gate()) judge_all_nodes(now);
  switch (watch_.look(now, activity())) {
    case ProgressWatch::Verdict::kMoving:
      return;
    case ProgressWatch::Verdict::kSlow:
      log_.warning(fmt::format("no progress for {:.1f} s\n{}", seconds(stuck_after_),
                               print_with_culprit(core_.wait_graph())));
      return;
    case ProgressWatch::Verdict::kStuck:
      if (core_.gate()) {
        if (judges_all_) ask_all_nodes(now);
        return;
      }
      fail(fmt::format("nothing but timers has moved for {:.1f} s {}", seconds(stuck_after_),
                       kSetting),
           core_.wait_graph());
      return;
    case ProgressWatch::Verdict::kDeadlock:
      fail("nothing can move any more", core_.wait_graph());
      return;
  }
}

void NodeWatch::ask_all_nodes(TimePoint now) {
  // Before the answers can come: with each comes the progress that its node has made by then.
  progress_when_asked_ = activity().progress;
  core_.gate()->request_graphs();
  answers_due_ = now + kGraphPatience;
}

// Judges once, when all nodes have answered or their time is over. Any progress since the question
// clears the run.
void NodeWatch::judge_all_nodes(TimePoint now) {
  if (answers_due_ == TimePoint::max()) return;
  Gate::Graphs answers = core_.gate()->graphs();
  if (!answers.complete && now < answers_due_) return;
  answers_due_ = TimePoint::max();
  if (activity().progress != progress_when_asked_) return;
  answers.graphs.push_back(core_.wait_graph());
  const WaitGraph graph = merge(answers.graphs);
  const double patience = seconds(stuck_after_);
  const std::optional<Duration> handler = longest_handler(graph);
  if (!handler) {
    fail(fmt::format("nothing has moved on any node for {:.1f} s {}", patience, kSetting), graph);
  } else if (*handler < kSlowHandlers * stuck_after_) {
    log_.warning(fmt::format("no progress on any node for {:.1f} s\n{}", patience,
                             print_with_culprit(graph)));
  } else {
    fail(fmt::format("nothing has moved on any node while a handler ran for {:.1f} s, {} "
                     "times as long as it may {}; if it only takes its time, allow it more",
                     seconds(*handler), kSlowHandlers, kSetting),
         graph);
  }
}

void NodeWatch::fail(std::string_view what, const WaitGraph& graph) {
  core_.tree().fail_stuck(what, graph, timers_.next_due() != TimerQueue::kNever);
}

}  // namespace troupe::runtime
