#include "runtime/node/node_core.h"

#include <pthread.h>

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/start_thread.h"

namespace troupe::runtime {
namespace {

// How long handlers that still run are waited for, when the node was given up and when every actor
// has ended. The second case only waits for the way out of a last slice, however slow the machine.
constexpr std::chrono::seconds kAbandonPatience{1};
constexpr std::chrono::minutes kEndPatience{1};
// A node with others is looked at so often before it counts as stuck.
constexpr int kLooksBeforeStuck = 100;

// The actors of the plan that are on the node; all of the plan when there is only one.
Plan part_of(const Plan& plan, const NodeOptions& options, const Uplink* uplink) {
  const std::vector<Error> errors = check(plan);
  CHECK(errors.empty(), errors.front().message);
  if (uplink == nullptr && options.left_out.empty()) return plan;
  Plan part;
  for (const ActorPlan& actor : plan.actors) {
    const bool is_here = uplink == nullptr || carries_out(uplink->gate.node, actor.node);
    if (is_here && !options.left_out.contains(actor.name)) part.actors.push_back(actor);
  }
  CHECK(!part.actors.empty(), "no actor of the plan is on the node");
  return part;
}

}  // namespace

NodeCore::NodeCore(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
                   Log& log, Scheduler* scheduler, const Uplink* uplink)
    : plan_(part_of(plan, options, uplink)),
      options_(options),
      clock_(clock),
      log_(log),
      wiring_(*this, plan_, options.trace_records, log_),
      outside_(kOutside, std::string(kOutsideName)),
      scheduler_(scheduler) {
  // The gate comes before the links, as those to other nodes end in it, and the scheduler before
  // the tree, which refers to it.
  if (uplink != nullptr) {
    gate_ = std::make_unique<Gate>(*this, plan, uplink->gate, uplink->wire, uplink->types, clock_,
                                   log_);
    gate_has_thread_ = uplink->own_thread;
    judges_all_ = plan.actors.front().node == uplink->gate.node;
  }
  wiring_.wire(plan, options_.left_out, gate_.get());
  if (scheduler_ == nullptr) {
    own_scheduler_ = std::make_unique<ThreadScheduler>(options.scheduler_threads, clock);
    scheduler_ = own_scheduler_.get();
  }
  tree_.emplace(plan_, wiring_, std::move(factory), options.shutdown_deadline, clock_, log_,
                *scheduler_);
}

NodeCore::~NodeCore() {
  CHECK(!gate_thread_.joinable(), "a node is ended before it goes");
  // Actors go before links: the messages they keep give their credits back to them.
  wiring_.clear();
}

Origin* NodeCore::control_origin_of(const std::string& actor) {
  if (actor == outside_.sender_name()) return &outside_;
  Cell* found = wiring_.find(actor);
  return found == nullptr ? nullptr : &found->control_origin();
}

// Tells nothing to a root that has ended.
void NodeCore::tell_root(Message message) {
  const std::optional<ActorId> root = tree_->open_root();
  if (root) send_control(outside_, wiring_.cell(*root).plan().name, std::move(message));
}

void NodeCore::begin(const std::shared_ptr<NodeCore>& self) {
  CHECK(phase_ == Phase::kMade, "a node begins once");
  phase_ = Phase::kBegun;
  watch_.emplace(*this, timers_, log_, options_.stuck_after, judges_all_, clock_.now());
  tree_->begin([&] { return start_threads(self); });
}

Result<void> NodeCore::start_threads(const std::shared_ptr<NodeCore>& self) {
  const auto refused = [&] {
    return own_scheduler_ ? own_scheduler_->refused() : std::optional<Error>();
  };
  if (const auto error = refused()) return *error;
  for (const auto& cell : wiring_.cells()) {
    scheduler_->add(*cell, cell->plan().own_thread, self);
    if (const auto error = refused()) return *error;
  }
  if (!gate_ || !gate_has_thread_) return {};
  ASSIGN_OR_RETURN(gate_thread_, start_thread("connections", [this] {
                     ::pthread_setname_np(::pthread_self(), "gate");  // for people with a debugger
                     tree_->wait_until_begun();
                     while (!gate_->closed()) gate_->turn(TimePoint::max());
                   }));
  return {};
}

bool NodeCore::tend() {
  const TimePoint now = clock_.now();
  for (const TimerQueue::Timer& timer : timers_.take_due(now)) {
    wiring_.cell(timer.actor).post(TimerSignal{timer.id});
  }
  // Timers first: they may be all that still moves the node, and look() must not find it stuck
  // before.
  const ActorTree::Look look = tree_->look(now);
  if (look == ActorTree::Look::kEnded) {
    if (gate_) gate_->begin_close();
    return !gate_ || gate_->closed();
  }
  // The graph is made outside the tree's lock, which it takes itself.
  if (look == ActorTree::Look::kOverdue && !tree_->halted() &&
      !tree_->give_up_overdue(wait_graph())) {
    return false;
  }
  if (!tree_->halted()) watch_->look(now);
  return tree_->halted();
}

TimePoint NodeCore::next_due() const {
  const TimePoint due =
      std::min({timers_.next_due(), watch_->answers_due(), tree_->next_overdue()});
  // A scheduler that tells when it falls idle is looked at then, and when that has lasted too long.
  Duration interval = scheduler_->look_interval();
  if (interval == Duration::max()) return std::min(due, watch_->next_look());
  // Only a node alone can fail at once, as soon as nothing moves.
  if (gate_) interval = std::max(interval, options_.stuck_after / kLooksBeforeStuck);
  return std::min(due, clock_.now() + interval);
}

void NodeCore::send_control(Origin& origin, std::string_view actor, Message message) {
  // A message that is sent on may hold the credit of the link by which it came.
  message.release_credit();
  message.attach(origin, false);
  Cell* target = wiring_.find(std::string(actor));
  if (target == nullptr) {
    if (gate_ && gate_->links().post_control(std::string(actor), message)) return;
    return_to_sender(std::move(message),
                     {ErrorKind::kInternal, "there is no actor " + std::string(actor)});
    return;
  }
  if (origin.sender() != kOutside) {
    CellTrace& trace = wiring_.cell(origin.sender()).trace();
    message.attach(origin, false, trace.sent_control(origin.trace_link(), message.bytes()));
  }
  target->deliver(std::move(message), Lane::kControl);
}

void NodeCore::send_control_from_outside(std::string_view actor, Message message) {
  send_control(outside_, actor, std::move(message));
}

// A sender elsewhere has it back by the gate. Outside there is nobody to give it to, so the log
// tells.
void NodeCore::return_to_sender(Message message, const Error& cause) {
  Origin& origin = *message.origin();
  if (!origin.undelivered()) return;
  if (origin.sender() == kElsewhere) {
    gate_->links().send_back(std::move(message), cause);
    return;
  }
  const std::string name(message.name());
  if (origin.sender() == kOutside && message.as<PeerLeft>() != nullptr) {
    log_.debug(fmt::format("a peer left when this node had ended: {}", cause.message));
  } else if (origin.sender() == kOutside) {
    log_.warning(fmt::format("'{}' from outside was not delivered: {}", name, cause.message));
  } else if (!wiring_.cell(origin.sender()).post(ReturnSignal{std::move(message), cause})) {
    log_.debug(
        fmt::format("'{}' of {} is lost, as both ends have ended", name, origin.sender_name()));
  }
}

TimerId NodeCore::add_timer(ActorId actor, TimePoint due) {
  const TimerQueue::Added added = timers_.add(actor, due);
  if (added.earliest) scheduler_->wake();
  return added.timer.id;
}

WaitGraph NodeCore::wait_graph() const {
  WaitGraph graph;
  tree_->add_actors(graph);
  wiring_.add_links(graph);
  return graph;
}

NodeEnd NodeCore::end() {
  CHECK(phase_ == Phase::kBegun, "a node ends once, after it has begun");
  phase_ = Phase::kEnded;
  NodeEnd end;
  const Duration patience = tree_->end(end) ? Duration(kEndPatience) : Duration(kAbandonPatience);
  if (gate_) {
    // The gate of a node that was given up may still wait for acknowledgements: not for long.
    gate_->begin_close();
    if (gate_thread_.joinable()) gate_thread_.join();
  }
  // The gate has ended and delivers nothing more. A cell that still runs keeps its actor, and is
  // told of by name.
  std::vector<Task*> tasks;
  for (const auto& cell : wiring_.cells()) tasks.push_back(cell.get());
  const std::vector<Task*> busy = scheduler_->retire(tasks, patience);
  for (const auto& cell : wiring_.cells()) {
    if (std::find(busy.begin(), busy.end(), cell.get()) == busy.end()) {
      cell->clear();
    } else {
      end.abandoned.push_back(cell->plan().name);
    }
  }
  if (own_scheduler_) own_scheduler_->shut_down();
  return end;
}

}  // namespace troupe::runtime
