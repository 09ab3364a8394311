#include "runtime/node/actor_tree.h"

#include <fmt/format.h>

namespace troupe::runtime {

ActorTree::ActorTree(const Plan& plan, const NodeWiring& wiring, ActorFactory factory,
                     Duration patience, const Clock& clock, const Log& log, Scheduler& scheduler)
    : wiring_(wiring),
      factory_(std::move(factory)),
      patience_(patience),
      clock_(clock),
      log_(log),
      scheduler_(scheduler),
      supervisor_(plan, patience) {
  for (const auto& cell : wiring_.cells()) made_.push_back(make_actor(cell->id()));
}

std::unique_ptr<Actor> ActorTree::make_actor(ActorId actor) {
  const std::scoped_lock lock(factory_mutex_);
  const ActorPlan& plan = wiring_.cell(actor).plan();
  std::unique_ptr<Actor> made = factory_(plan);
  CHECK(made != nullptr, "the factory makes nothing of actor " + plan.name);
  return made;
}

void ActorTree::begin(const std::function<Result<void>()>& start_threads) {
  const std::scoped_lock lock(mutex_);
  last_handled_.assign(wiring_.cells().size(), {0, clock_.now()});
  if (const auto started = start_threads(); !started.ok()) {
    // No actor is alive, so none is asked to stop.
    error_ = started.error();
    halted_.store(true);
    return;
  }
  Supervisor::Orders orders;
  for (const ActorId actor : supervisor_.subtree(supervisor_.root())) {
    orders.push_back({Supervisor::Order::Kind::kStart, actor, {}});
  }
  // A request to stop may have come before there was an actor to hear it.
  if (stop_requested_) orders.push_back({Supervisor::Order::Kind::kStop, supervisor_.root(), {}});
  carry_out(std::move(orders));
}

// Cells are enqueued after the last one is open: an actor that starts may send to any other one.
void ActorTree::carry_out(Supervisor::Orders orders) {
  std::vector<Cell*> opened;
  for (Supervisor::Order& order : orders) {
    Cell& target = wiring_.cell(order.actor);
    switch (order.kind) {
      case Supervisor::Order::Kind::kStop:
        target.post(StopSignal{});
        break;
      case Supervisor::Order::Kind::kTell: {
        // The owner may be ending at this moment, with its mailbox closed already.
        const ChildEnd end = order.end;
        if (!target.post(ChildSignal{std::move(order.end)})) supervisor_.unseen(order.actor, end);
        break;
      }
      case Supervisor::Order::Kind::kStart: {
        auto& made = made_[static_cast<std::size_t>(order.actor.index)];
        if (target.open(std::move(made))) opened.push_back(&target);
        break;
      }
    }
  }
  for (Cell* cell : opened) scheduler_.enqueue(*cell);
  if (supervisor_.ended()) scheduler_.wake();
}

void ActorTree::stop_child(ActorId owner, std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const ActorId child = supervisor_.child(owner, name);
  CHECK(child != kOutside, "only a child can be asked to stop, not " + std::string(name));
  carry_out(supervisor_.ask_stop(child, clock_.now()));
}

// The actors are made before anything is decided, outside the lock: a factory may take long.
void ActorTree::restart_child(ActorId owner, ActorId child) {
  std::vector<std::unique_ptr<Actor>> made;
  const std::vector<ActorId> subtree = supervisor_.subtree(child);
  for (const ActorId actor : subtree) made.push_back(make_actor(actor));
  const std::scoped_lock lock(mutex_);
  Supervisor::Orders orders = supervisor_.restart(owner, child);
  if (orders.empty()) return;
  for (std::size_t i = 0; i < subtree.size(); ++i) {
    made_[static_cast<std::size_t>(subtree[i].index)] = std::move(made[i]);
  }
  carry_out(std::move(orders));
}

void ActorTree::actor_gone(ActorId actor, std::optional<Error> error,
                           const std::vector<ChildEnd>& unseen) {
  const std::scoped_lock lock(mutex_);
  for (const ChildEnd& end : unseen) supervisor_.unseen(actor, end);
  carry_out(supervisor_.gone(actor, std::move(error), clock_.now()));
}

void ActorTree::request_stop() {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(stop_requested_, true)) give_up_asked_ = true;
    carry_out(supervisor_.ask_stop(supervisor_.root(), clock_.now()));
  }
  scheduler_.wake();
}

std::optional<ActorId> ActorTree::open_root() const {
  const std::scoped_lock lock(mutex_);
  const Supervisor::State state = supervisor_.state(supervisor_.root());
  if (state == Supervisor::State::kClosing || state == Supervisor::State::kEnded) return {};
  return supervisor_.root();
}

std::vector<ActorStats> ActorTree::actor_stats() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ActorStats> all;
  for (const auto& cell : wiring_.cells()) {
    const Supervisor::State state = supervisor_.state(cell->id());
    std::string word = "waiting";
    if (state == Supervisor::State::kEnded) {
      word = "ended";
    } else if (state != Supervisor::State::kRunning) {
      word = "stopping";
    } else if (cell->in_handler()) {
      word = "running";
    } else if (cell->scheduled()) {
      word = "queued";
    }
    all.push_back({cell->plan().name, std::move(word), cell->handled()});
  }
  return all;
}

// Only an idle actor can be asked what it waits for. Its cell is claimed meanwhile, so that no
// thread runs it. In a halted node none is asked.
void ActorTree::add_actors(WaitGraph& graph) const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < wiring_.cells().size(); ++i) {
    Cell& cell = *wiring_.cells()[i];
    ActorWait wait;
    wait.name = cell.plan().name;
    wait.stopping = supervisor_.state(cell.id()) == Supervisor::State::kStopping;
    if (supervisor_.state(cell.id()) == Supervisor::State::kEnded) {
      wait.activity = ActorWait::Activity::kEnded;
    } else if (auto words = halted() ? std::nullopt : cell.ask_waiting_for()) {
      wait.words = std::move(*words);
    } else if (cell.in_handler()) {
      wait.activity = ActorWait::Activity::kRunning;
      if (i < last_handled_.size()) wait.running_for = clock_.now() - last_handled_[i].second;
    } else if (!halted()) {
      wait.activity = ActorWait::Activity::kQueued;
    }
    graph.actors.push_back(std::move(wait));
  }
}

ActorTree::Look ActorTree::look(TimePoint now) {
  const std::scoped_lock lock(mutex_);
  if (supervisor_.ended()) return Look::kEnded;
  note_handled(now);
  if (give_up_asked_) give_up("asked a second time to stop");
  return supervisor_.overdue(now).empty() ? Look::kGoesOn : Look::kOverdue;
}

// A handler is as old as the last look at which its cell waited, or had handled another message
// since the look before.
void ActorTree::note_handled(TimePoint now) {
  for (std::size_t i = 0; i < last_handled_.size(); ++i) {
    const Cell& cell = *wiring_.cells()[i];
    const std::int64_t handled = cell.handled();
    const bool waits = !cell.in_handler();
    if (waits || handled != last_handled_[i].first) last_handled_[i] = {handled, now};
  }
}

TimePoint ActorTree::next_overdue() const {
  const std::scoped_lock lock(mutex_);
  return supervisor_.next_overdue();
}

bool ActorTree::give_up_overdue(const WaitGraph& graph) {
  const std::scoped_lock lock(mutex_);
  if (supervisor_.ended()) return false;
  give_up(fmt::format("the shutdown deadline of {:.1f} s has passed", seconds(patience_)), &graph);
  return true;
}

void ActorTree::fail_stuck(std::string_view what, const WaitGraph& graph, bool timers_pending) {
  const std::scoped_lock lock(mutex_);
  if (supervisor_.ended()) return;
  if (supervisor_.state(supervisor_.root()) != Supervisor::State::kRunning) {
    // The node is stopping already. While a timer is pending, the shutdown deadline decides.
    // Without one nothing can move any more, so there is nothing to wait for.
    if (!timers_pending) give_up(what, &graph);
    return;
  }
  error_ =
      Error{ErrorKind::kInternal, fmt::format("stuck: {}\n{}", what, print_with_culprit(graph))};
  log_.warning(fmt::format("stuck: {}; everyone is asked to stop", what));
  carry_out(supervisor_.ask_stop(supervisor_.root(), clock_.now()));
}

// Does not log what becomes the node's error: the reader of NodeEnd reports that.
void ActorTree::give_up(std::string_view why, const WaitGraph* graph) {
  if (halted()) return;
  halted_.store(true);
  for (const ActorId actor : supervisor_.alive()) {
    if (supervisor_.state(actor) != Supervisor::State::kClosing) {
      unstopped_.push_back(wiring_.cell(actor).plan().name);
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

bool ActorTree::end(NodeEnd& end) {
  const std::scoped_lock lock(mutex_);
  const bool all_ended = supervisor_.ended();
  if (!all_ended) {
    give_up("the node was ended");
  } else if (!error_) {
    error_ = supervisor_.error();
  }
  end.error = error_;
  end.unstopped = unstopped_;
  halted_.store(true);
  return all_ended;
}

}  // namespace troupe::runtime
