// The part of NodeCore that looks at a running node: timers, deadlines, progress and statistics.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "runtime/node_core.h"

namespace troupe::runtime {
namespace {

// For the answers of other nodes to who waits for whom.
constexpr std::chrono::seconds kGraphPatience{2};
// Of several nodes: times stuck_after for which a handler is taken to be slow. One that hangs, with
// its process alive, would else hold up all others for good.
constexpr int kSlowHandlers = 8;
// Where people say what stuck_after is.
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

bool NodeCore::tend() {
  const TimePoint now = clock_.now();
  fire_timers(now);
  bool overdue = false;
  {
    const std::scoped_lock lock(tree_mutex_);
    if (supervisor_.ended()) {
      if (gate_) gate_->begin_close();
      return !gate_ || gate_->closed();
    }
    note_handled(now);
    if (give_up_asked_.load()) give_up("asked a second time to stop");
    overdue = !supervisor_.overdue(now).empty();
  }
  if (overdue && !halted()) {
    const WaitGraph graph = wait_graph();
    const std::scoped_lock lock(tree_mutex_);
    if (supervisor_.ended()) return false;
    give_up(fmt::format("the shutdown deadline of {:.1f} s has passed",
                        seconds(options_.shutdown_deadline)),
            &graph);
  }
  if (!halted()) watch(now);
  return halted();
}

TimePoint NodeCore::next_due() const {
  TimePoint due = std::min(timers_.next_due(), graphs_due_);
  {
    const std::scoped_lock lock(tree_mutex_);
    due = std::min(due, supervisor_.next_overdue());
  }
  // A scheduler that tells when it falls idle is looked at then, and when that has lasted too long.
  const Duration interval = scheduler_->look_interval();
  return std::min(due, interval == Duration::max() ? watch_->next_look() : clock_.now() + interval);
}

void NodeCore::fire_timers(TimePoint now) {
  for (const TimerQueue::Timer& timer : timers_.take_due(now)) {
    cell(timer.actor).post(TimerSignal{timer.id});
  }
}

void NodeCore::note_handled(TimePoint now) {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const std::int64_t handled = cells_[i]->handled();
    const bool waits = !cells_[i]->in_handler();
    if (waits || handled != last_handled_[i].first) last_handled_[i] = {handled, now};
  }
}

// Two passes: an actor that is idle in both and has handled nothing in between did not run in
// between. If that holds for all of them, then between the passes none ran and none was due to.
bool NodeCore::quiet() const {
  std::int64_t before = 0;
  for (const auto& cell : cells_) {
    before += cell->handled();
    if (cell->scheduled()) return false;
  }
  std::int64_t after = 0;
  for (const auto& cell : cells_) {
    if (cell->scheduled()) return false;
    after += cell->handled();
  }
  return before == after;
}

Activity NodeCore::activity() const {
  Activity activity;
  activity.quiet = quiet();
  // A timer that fires is taken out by this same thread, so none can hide between the two lines.
  activity.timers_pending = timers_.next_due() != TimerQueue::kNever;
  activity.progress = own_progress();
  if (gate_) {
    // What others send can always move it on.
    activity.timers_pending = true;
    activity.progress += gate_->peers_progress();
  }
  return activity;
}

std::int64_t NodeCore::own_progress() const {
  std::int64_t progress = 0;
  for (const auto& cell : cells_) progress += cell->progress();
  return progress;
}

void NodeCore::watch(TimePoint now) {
  if (gate_) watch_all_nodes(now);
  switch (watch_->look(now, activity())) {
    case ProgressWatch::Verdict::kMoving:
      return;
    case ProgressWatch::Verdict::kSlow:
      log_.warning(fmt::format("no progress for {:.1f} s\n{}", seconds(options_.stuck_after),
                               print_with_culprit(wait_graph())));
      return;
    case ProgressWatch::Verdict::kStuck:
      if (gate_) {
        if (first_node_) ask_all_nodes(now);
        return;
      }
      fail_stuck(fmt::format("nothing but timers has moved for {:.1f} s {}",
                             seconds(options_.stuck_after), kSetting));
      return;
    case ProgressWatch::Verdict::kDeadlock:
      fail_stuck("nothing can move any more");
      return;
  }
}

// The plan's first node hears of the progress of all, and judges for all.
void NodeCore::ask_all_nodes(TimePoint now) {
  gate_->request_graphs();
  progress_when_asked_ = activity().progress;
  graphs_due_ = now + kGraphPatience;
}

void NodeCore::watch_all_nodes(TimePoint now) {
  if (graphs_due_ == TimePoint::max()) return;
  Gate::Graphs answers = gate_->graphs();
  if (!answers.complete && now < graphs_due_) return;
  graphs_due_ = TimePoint::max();
  if (activity().progress != progress_when_asked_) return;
  answers.graphs.push_back(wait_graph());
  const WaitGraph graph = merge(answers.graphs);
  const double patience = seconds(options_.stuck_after);
  const std::optional<Duration> handler = longest_handler(graph);
  if (!handler) {
    fail_stuck(fmt::format("nothing has moved on any node for {:.1f} s {}", patience, kSetting),
               graph);
  } else if (*handler < kSlowHandlers * options_.stuck_after) {
    log_.warning(fmt::format("no progress on any node for {:.1f} s\n{}", patience,
                             print_with_culprit(graph)));
  } else {
    fail_stuck(fmt::format("nothing has moved on any node while a handler ran for {:.1f} s, {} "
                           "times as long as it may {}; if it only takes its time, allow it more",
                           seconds(*handler), kSlowHandlers, kSetting),
               graph);
  }
}

void NodeCore::fail_stuck(std::string_view what) { fail_stuck(what, wait_graph()); }

void NodeCore::fail_stuck(std::string_view what, const WaitGraph& graph) {
  const std::scoped_lock lock(tree_mutex_);
  if (supervisor_.ended()) return;
  if (supervisor_.state(supervisor_.root()) != Supervisor::State::kRunning) {
    // Stopping: what only timers can still end has the shutdown deadline; what nothing can, has
    // not.
    if (timers_.next_due() == TimerQueue::kNever) give_up(what, &graph);
    return;
  }
  error_ =
      Error{ErrorKind::kInternal, fmt::format("stuck: {}\n{}", what, print_with_culprit(graph))};
  log_.warning(fmt::format("stuck: {}; everyone is asked to stop", what));
  carry_out(supervisor_.ask_stop(supervisor_.root(), clock_.now()));
}

// Under the tree's lock. What becomes the node's error is left to whoever reads that to tell.
void NodeCore::give_up(std::string_view why, const WaitGraph* graph) {
  if (halted()) return;
  halted_.store(true);
  for (const ActorId actor : supervisor_.alive()) {
    if (supervisor_.state(actor) != Supervisor::State::kClosing) {
      unstopped_.push_back(cell(actor).plan().name);
    }
  }
  std::string text = fmt::format("{}; not stopped: {}", why, fmt::join(unstopped_, ", "));
  if (graph != nullptr) text += fmt::format("\n{}", print_with_culprit(*graph));
  if (error_) {
    log_.error(text);
  } else {
    error_ = Error{ErrorKind::kInternal, std::move(text)};
  }
}

WaitGraph NodeCore::wait_graph() const {
  const std::scoped_lock lock(tree_mutex_);
  WaitGraph graph;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const ActorId actor{static_cast<std::int32_t>(i)};
    ActorWait wait;
    wait.name = cells_[i]->plan().name;
    wait.stopping = supervisor_.state(actor) == Supervisor::State::kStopping;
    if (supervisor_.state(actor) == Supervisor::State::kEnded) {
      wait.activity = ActorWait::Activity::kEnded;
    } else if (auto words = halted() ? std::nullopt : cells_[i]->ask_waiting_for()) {
      wait.words = std::move(*words);
    } else if (cells_[i]->in_handler()) {
      wait.activity = ActorWait::Activity::kRunning;
      if (i < last_handled_.size()) wait.running_for = clock_.now() - last_handled_[i].second;
    } else if (!halted()) {
      wait.activity = ActorWait::Activity::kQueued;
    }
    graph.actors.push_back(std::move(wait));
  }
  for (const auto& link : links_) {
    const LinkStats stats = link->stats();
    graph.links.push_back({.from = static_cast<std::size_t>(link->from().id().index),
                           .to = static_cast<std::size_t>(link->to().id().index),
                           .from_port = stats.plan.from_port,
                           .to_port = stats.plan.to_port,
                           .lane = stats.plan.lane,
                           .sender_waits = link->sender_waits(),
                           .messages_out = stats.in_use_messages,
                           .message_credits = stats.plan.message_credits,
                           .bytes_out = stats.in_use_bytes,
                           .byte_credits = stats.plan.byte_credits,
                           .queued = stats.queued});
  }
  if (gate_) gate_->add_to(graph);
  return graph;
}

std::vector<LinkStats> NodeCore::link_stats() const {
  std::vector<LinkStats> all;
  for (const auto& link : links_) all.push_back(link->stats());
  if (gate_) {
    for (LinkStats& stats : gate_->link_stats()) all.push_back(std::move(stats));
  }
  return all;
}

std::vector<ActorStats> NodeCore::actor_stats() const {
  const std::scoped_lock lock(tree_mutex_);
  std::vector<ActorStats> all;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Supervisor::State state = supervisor_.state(ActorId{static_cast<std::int32_t>(i)});
    std::string word = "waiting";
    if (state == Supervisor::State::kEnded) {
      word = "ended";
    } else if (state != Supervisor::State::kRunning) {
      word = "stopping";
    } else if (cells_[i]->in_handler()) {
      word = "running";
    } else if (cells_[i]->scheduled()) {
      word = "queued";
    }
    all.push_back({cells_[i]->plan().name, std::move(word), cells_[i]->handled()});
  }
  return all;
}

std::vector<ActorTrace> NodeCore::traces() const {
  std::vector<ActorTrace> all;
  for (const auto& cell : cells_) {
    all.push_back({cell->plan().name, cell->trace_snapshot()});
    if (gate_) gate_->settle_flows(all.back().trace);
  }
  return all;
}

}  // namespace troupe::runtime
