#include "runtime/node_core.h"

#include <pthread.h>

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/start_thread.h"

namespace troupe::runtime {
namespace {

// For handlers that still run when the node is given up: long enough for any that only takes its
// time.
constexpr std::chrono::seconds kAbandonPatience{1};

ActorId actor_at(std::size_t position) { return ActorId{static_cast<std::int32_t>(position)}; }

// What of the plan is on the node; all of it when there is only one.
Plan part_of(const Plan& plan, const NodeOptions& options, const Uplink* uplink) {
  if (uplink == nullptr && options.left_out.empty()) return plan;
  Plan part;
  const auto is_here = [&](const std::string& actor, std::string_view node) {
    return (uplink == nullptr || node == uplink->gate.node) && !options.left_out.contains(actor);
  };
  for (const ActorPlan& actor : plan.actors) {
    if (is_here(actor.name, actor.node)) part.actors.push_back(actor);
  }
  // Of a cluster there are as many links as members squared.
  const auto node_at = actor_nodes(plan);
  for (const LinkPlan& link : plan.links) {
    if (is_here(link.from, node_at.at(link.from)) && is_here(link.to, node_at.at(link.to))) {
      part.links.push_back(link);
    }
  }
  CHECK(!part.actors.empty(), "no actor of the plan is on the node");
  return part;
}

}  // namespace

NodeCore::NodeCore(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
                   Log& log, Scheduler* scheduler, const Uplink* uplink)
    : plan_(part_of(plan, options, uplink)),
      factory_(std::move(factory)),
      options_(options),
      clock_(clock),
      log_(log),
      outside_(kOutside, std::string(kOutsideName)),
      scheduler_(scheduler),
      supervisor_(plan_, options.shutdown_deadline) {
  if (uplink != nullptr) {
    gate_ = std::make_unique<Gate>(*this, plan, uplink->gate, uplink->wire, uplink->types, clock_,
                                   log_);
    gate_has_thread_ = uplink->own_thread;
    first_node_ = plan.actors.front().node == uplink->gate.node;
  }
  wire(plan);
  for (std::size_t i = 0; i < cells_.size(); ++i) made_.push_back(make_actor(actor_at(i)));
  if (scheduler_ == nullptr) {
    own_scheduler_ = std::make_unique<ThreadScheduler>(options.scheduler_threads, clock);
    scheduler_ = own_scheduler_.get();
  }
}

NodeCore::~NodeCore() {
  CHECK(!gate_thread_.joinable(), "a node is ended before it goes");
  // Actors first: the messages they keep give their credits back to links.
  for (const auto& cell : cells_) cell->clear();
}

void NodeCore::wire(const Plan& whole) {
  const std::vector<Error> errors = check(whole);
  CHECK(errors.empty(), errors.front().message);
  for (std::size_t i = 0; i < plan_.actors.size(); ++i) {
    ids_.emplace(plan_.actors[i].name, actor_at(i));
    cells_.push_back(
        std::make_unique<Cell>(*this, actor_at(i), plan_.actors[i], options_.trace_records, log_));
  }
  if (gate_) {
    for (const std::string& node : nodes_of(whole)) {
      const bool here = node == plan_.actors.front().node;
      if (!here && (first_node_ || node == whole.actors.front().node)) gate_->add_peer(node);
    }
  }
  const auto nodes = actor_nodes(whole);
  for (std::size_t i = 0; i < whole.links.size(); ++i) {
    wire_link(whole.links[i], static_cast<std::uint32_t>(i), nodes);
  }
  if (!gate_) return;
  for (const ActorPlan& actor : whole.actors) {
    if (!ids_.contains(actor.name)) gate_->add_actor(actor.name, actor.node);
  }
}

void NodeCore::wire_link(const LinkPlan& link, std::uint32_t number, const ActorNodes& nodes) {
  if (options_.left_out.contains(link.from) || options_.left_out.contains(link.to)) return;
  Cell* from = find_cell(link.from);
  Cell* to = find_cell(link.to);
  if (from == nullptr && to == nullptr) return;
  if (from == nullptr) {
    gate_->add_inlet(number, link, std::string(nodes.at(link.from)), *to);
    return;
  }
  const PortId port{static_cast<std::int32_t>(from->outs())};
  if (to == nullptr) {
    const std::string node(nodes.at(link.to));
    from->add_out(gate_->add_outlet(number, link, *from, port, node));
    return;
  }
  links_.push_back(std::make_unique<Link>(number, link, *from, port, *to));
  from->add_out(*links_.back());
}

Cell* NodeCore::find_cell(const std::string& actor) const {
  const auto found = ids_.find(actor);
  return found == ids_.end() ? nullptr : &cell(found->second);
}

Origin* NodeCore::control_origin_of(const std::string& actor) {
  if (actor == outside_.sender_name()) return &outside_;
  Cell* found = find_cell(actor);
  return found == nullptr ? nullptr : &found->control_origin();
}

// A root that has ended needs to know of nothing any more.
void NodeCore::tell_root(Message message) {
  {
    const std::scoped_lock lock(tree_mutex_);
    const Supervisor::State state = supervisor_.state(supervisor_.root());
    if (state == Supervisor::State::kClosing || state == Supervisor::State::kEnded) return;
  }
  send_control(outside_, cell(supervisor_.root()).plan().name, std::move(message));
}

std::unique_ptr<Actor> NodeCore::make_actor(ActorId actor) {
  const std::scoped_lock lock(factory_mutex_);
  std::unique_ptr<Actor> made = factory_(cell(actor).plan());
  CHECK(made != nullptr, "the factory makes nothing of actor " + cell(actor).plan().name);
  return made;
}

void NodeCore::begin(const std::shared_ptr<NodeCore>& self) {
  CHECK(phase_ == Phase::kMade, "a node begins once");
  phase_ = Phase::kBegun;
  const TimePoint now = clock_.now();
  watch_.emplace(options_.stuck_after, now);
  const std::scoped_lock lock(tree_mutex_);
  last_handled_.assign(cells_.size(), {0, now});
  if (const auto started = start_threads(self); !started.ok()) {
    // Nobody is asked to stop: there is not one who could hear it.
    error_ = started.error();
    halted_.store(true);
    return;
  }
  Supervisor::Orders orders;
  for (const ActorId actor : supervisor_.subtree(supervisor_.root())) {
    orders.push_back({Supervisor::Order::Kind::kStart, actor, {}});
  }
  // A request to stop may have come before there was anyone to hear it.
  if (stop_requested_) orders.push_back({Supervisor::Order::Kind::kStop, supervisor_.root(), {}});
  carry_out(std::move(orders));
}

// Under the tree's lock, and before any actor is opened: all begins, or nothing does.
Result<void> NodeCore::start_threads(const std::shared_ptr<NodeCore>& self) {
  const auto refused = [&] {
    return own_scheduler_ ? own_scheduler_->refused() : std::optional<Error>();
  };
  if (const auto error = refused()) return *error;
  for (const auto& cell : cells_) {
    scheduler_->add(*cell, cell->own_thread(), self);
    if (const auto error = refused()) return *error;
  }
  if (!gate_ || !gate_has_thread_) return {};
  ASSIGN_OR_RETURN(gate_thread_, start_thread("connections", [this] {
                     ::pthread_setname_np(::pthread_self(), "gate");  // for people with a debugger
                     // Everyone here is to hear what others have to say.
                     { const std::scoped_lock everyone_is_open(tree_mutex_); }
                     while (!gate_->closed()) gate_->turn(TimePoint::max());
                   }));
  return {};
}

void NodeCore::carry_out(Supervisor::Orders orders) {
  std::vector<Cell*> opened;
  for (Supervisor::Order& order : orders) {
    Cell& target = cell(order.actor);
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
  for (Cell* cell : opened) scheduler_->enqueue(*cell);
  if (supervisor_.ended()) scheduler_->wake();
}

void NodeCore::send_control(Origin& origin, std::string_view actor, Message message) {
  message.release_credit();
  message.attach(origin, false);
  const auto found = ids_.find(std::string(actor));
  if (found == ids_.end()) {
    if (gate_ && gate_->post_control(std::string(actor), message)) return;
    return_to_sender(std::move(message),
                     {ErrorKind::kInternal, "there is no actor " + std::string(actor)});
    return;
  }
  if (origin.sender() != kOutside) {
    message.attach(origin, false, cell(origin.sender()).trace_control(message.bytes()));
  }
  cell(found->second).deliver(std::move(message), Lane::kControl);
}

void NodeCore::send_control_from_outside(std::string_view actor, Message message) {
  send_control(outside_, actor, std::move(message));
}

void NodeCore::return_to_sender(Message message, const Error& cause) {
  Origin& origin = *message.origin();
  if (!origin.undelivered()) return;
  if (origin.sender() == kElsewhere) {
    gate_->send_back(std::move(message), cause);
    return;
  }
  const std::string name(message.name());
  if (origin.sender() == kOutside && message.as<PeerLeft>() != nullptr) {
    log_.debug(fmt::format("a peer left when this node had ended: {}", cause.message));
  } else if (origin.sender() == kOutside) {
    log_.warning(fmt::format("'{}' from outside was not delivered: {}", name, cause.message));
  } else if (!cell(origin.sender()).post(ReturnSignal{std::move(message), cause})) {
    log_.debug(
        fmt::format("'{}' of {} is lost, as both ends have ended", name, origin.sender_name()));
  }
}

TimerId NodeCore::add_timer(ActorId actor, TimePoint due) {
  const TimerQueue::Added added = timers_.add(actor, due);
  if (added.earliest) scheduler_->wake();
  return added.timer.id;
}

void NodeCore::stop_child(ActorId owner, std::string_view name) {
  const std::scoped_lock lock(tree_mutex_);
  const ActorId child = supervisor_.child(owner, name);
  CHECK(child != kOutside, "only a child can be asked to stop, not " + std::string(name));
  carry_out(supervisor_.ask_stop(child, clock_.now()));
}

// The actors are made before anything is decided, outside the tree's lock: a factory may take long.
void NodeCore::restart_child(ActorId owner, ActorId child) {
  std::vector<std::unique_ptr<Actor>> made;
  const std::vector<ActorId> subtree = supervisor_.subtree(child);
  for (const ActorId actor : subtree) made.push_back(make_actor(actor));
  const std::scoped_lock lock(tree_mutex_);
  Supervisor::Orders orders = supervisor_.restart(owner, child);
  if (orders.empty()) return;
  for (std::size_t i = 0; i < subtree.size(); ++i) {
    made_[static_cast<std::size_t>(subtree[i].index)] = std::move(made[i]);
  }
  carry_out(std::move(orders));
}

void NodeCore::actor_gone(ActorId actor, std::optional<Error> error,
                          const std::vector<ChildEnd>& unseen) {
  const std::scoped_lock lock(tree_mutex_);
  for (const ChildEnd& end : unseen) supervisor_.unseen(actor, end);
  carry_out(supervisor_.gone(actor, std::move(error), clock_.now()));
}

void NodeCore::request_stop() {
  {
    const std::scoped_lock lock(tree_mutex_);
    if (std::exchange(stop_requested_, true)) give_up_asked_.store(true);
    carry_out(supervisor_.ask_stop(supervisor_.root(), clock_.now()));
  }
  scheduler_->wake();
}

// A node that was given up may have a gate that still waits for acknowledgements: not for long.
void NodeCore::close_gate() {
  if (!gate_) return;
  gate_->begin_close();
  if (gate_thread_.joinable()) gate_thread_.join();
}

NodeEnd NodeCore::end() {
  CHECK(phase_ == Phase::kBegun, "a node ends once, after it has begun");
  phase_ = Phase::kEnded;
  NodeEnd end;
  Duration patience = kAbandonPatience;
  {
    const std::scoped_lock lock(tree_mutex_);
    if (!supervisor_.ended()) {
      give_up("the node was ended");
    } else {
      // All that is still to come is the way out of a last slice, however slow the machine is.
      patience = std::chrono::minutes(1);
      if (!error_) error_ = supervisor_.error();
    }
    end.error = error_;
    end.unstopped = unstopped_;
    // Actors are about to go: nobody asks them what they wait for any more; see wait_graph().
    halted_.store(true);
  }
  close_gate();
  std::vector<Task*> tasks;
  for (const auto& cell : cells_) tasks.push_back(cell.get());
  std::vector<Task*> busy = scheduler_->retire(tasks, patience);
  for (const auto& cell : cells_) {
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
