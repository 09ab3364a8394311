#include "runtime/node/cell.h"

#include <array>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/base/no_memory.h"
#include "runtime/base/overloaded.h"
#include "runtime/node/node_core.h"

namespace troupe::runtime {
namespace {

TraceFlow flow_of(const Message& message) {
  if (message.number() == 0) return {};
  return {message.origin()->trace_link(), message.number()};
}

// In the order of Signal.
constexpr std::array<const char*, std::variant_size_v<Signal>> kSignalNames = {
    "start", "stop", "timer", "credit_returned", "child_ended", "undeliverable"};

}  // namespace

Cell::Cell(NodeCore& core, ActorId id, const ActorPlan& plan, int trace_records, const Log& log)
    : core_(core),
      id_(id),
      plan_(plan),
      log_(log.named(plan.name)),
      trace_(trace_records, core.clock(), plan.own_thread),
      control_origin_(id, plan.name),
      cause_{ErrorKind::kInternal, plan.name + " has not started"},
      context_(*this) {
  for (std::size_t i = 0; i < kSignalNames.size(); ++i) {
    signal_traces_[i] = trace_.ring().name(kSignalNames[i]);
  }
}

void Cell::add_out(Outlet& link) {
  outs_.push_back(&link);
  out_names_.push_back(link.plan().from_port);
}

bool Cell::open(std::unique_ptr<Actor> actor) {
  actor_ = std::move(actor);
  stop_asked_.store(false);
  return mailbox_.open() == Mailbox::Posted::kWake;
}

void Cell::clear() {
  const Mailbox::Remains remains = mailbox_.close();
  actor_.reset();
}

void Cell::deliver(Message&& message, Lane lane) {
  switch (mailbox_.post(std::move(message), lane)) {
    case Mailbox::Posted::kQueued:
      return;
    case Mailbox::Posted::kWake:
      core_.scheduler().enqueue(*this);
      return;
    case Mailbox::Posted::kClosed:
      core_.return_to_sender(std::move(message), end_cause());
      return;
  }
}

bool Cell::post(Signal&& signal) {
  if (std::holds_alternative<StopSignal>(signal)) stop_asked_.store(true);
  const Mailbox::Posted posted = mailbox_.post(std::move(signal));
  if (posted == Mailbox::Posted::kWake) core_.scheduler().enqueue(*this);
  return posted != Mailbox::Posted::kClosed;
}

bool Cell::run_slice(int limit) {
  running_cell = this;
  trace_.begin_slice();
  bool more = true;
  for (int i = 0; more && i < limit && !core_.tree().halted(); ++i) more = handle_next();
  // Before resting: the notices this sends may be to this very actor.
  for (Inlet* link : links_to_flush_) link->flush();
  links_to_flush_.clear();
  running_cell = nullptr;
  // A halted node's cells stay scheduled, so that nothing enqueues them again.
  if (core_.tree().halted()) return false;
  return more || !mailbox_.rest();
}

// A signal goes before all messages. An exception is the failure of this actor, and the others go
// on.
bool Cell::handle_next() {
  Signal* signal = mailbox_.take_signal();
  Message* message = signal == nullptr ? mailbox_.take_message() : nullptr;
  if (signal == nullptr && message == nullptr) return false;
  in_handler_.store(true, std::memory_order_relaxed);
  try {
    if (signal != nullptr) {
      handle(*signal);
    } else {
      if (mailbox_.lane() == Lane::kData) progress_.raise();
      // The trace's facts are taken first, since the handler may move the message away.
      const std::uint32_t name = trace_.number_of(message->name());
      const std::int64_t bytes = message->bytes();
      const TraceFlow flow = flow_of(*message);
      actor_->receive(context_, std::move(*message));
      trace_.end_handler(name, bytes, flow);
    }
  } catch (const std::bad_alloc&) {
    context_.fail(no_memory());
  } catch (const std::exception& escaped) {
    context_.fail({ErrorKind::kInternal, std::string("an exception escaped: ") + escaped.what()});
  }
  if (done_) end_actor();
  in_handler_.store(false, std::memory_order_relaxed);
  handled_.raise();
  return true;
}

void Cell::handle(Signal& signal) {
  const std::size_t kind = signal.index();
  std::visit(Overloaded{[&](StartSignal&) {
                          progress_.raise();
                          actor_->start(context_);
                        },
                        [&](StopSignal&) { actor_->stop(context_); },
                        [&](TimerSignal& timer) {
                          // A timer that was cancelled may have been on its way.
                          if (timers_.erase(timer.id) > 0) actor_->timer(context_, timer.id);
                        },
                        [&](CreditSignal& credit) {
                          const auto port = static_cast<std::size_t>(credit.port.index);
                          actor_->credit_returned(context_, out_names_[port]);
                        },
                        [&](ChildSignal& child) { tell_child_ended(child.end); },
                        [&](ReturnSignal& returned) {
                          actor_->undeliverable(context_, std::move(returned.message),
                                                returned.cause);
                        }},
             signal);
  trace_.end_handler(signal_traces_[kind], 0, {});
}

void Cell::tell_child_ended(const ChildEnd& end) {
  switch (actor_->child_ended(context_, end)) {
    case ChildDecision::kIgnore:
      if (end.error)
        log_.warning("goes on without " + end.name + ", which failed: " + end.error->message);
      return;
    case ChildDecision::kRestart:
      if (end.error) log_.warning("restarts " + end.name + ", which failed: " + end.error->message);
      if (!done_) core_.tree().restart_child(id_, end.id);
      return;
    case ChildDecision::kEscalate:
      if (done_) return;
      done_ = true;
      failure_ =
          end.error.value_or(Error{ErrorKind::kInternal, end.name + " ended, but " + plan_.name +
                                                             " cannot go on without it"});
      return;
  }
}

// The cause is set before the mailbox closes, because deliver() names it from that moment on. Ends
// of children that the actor has not seen go back to the tree, with its own end.
void Cell::end_actor() {
  for (const auto& [id, due] : timers_) core_.remove_timer(id, due);
  timers_.clear();
  {
    const std::scoped_lock lock(cause_mutex_);
    cause_ = failure_ ? Error{failure_->kind, plan_.name + " has failed: " + failure_->message}
                      : Error{ErrorKind::kInternal, plan_.name + " has ended"};
  }
  Mailbox::Remains remains = mailbox_.close();
  const Error cause = end_cause();
  for (Message& message : remains.messages) core_.return_to_sender(std::move(message), cause);
  std::vector<ChildEnd> unseen;
  for (Signal& signal : remains.signals) {
    if (auto* child = std::get_if<ChildSignal>(&signal)) unseen.push_back(std::move(child->end));
  }
  actor_.reset();
  for (Outlet* link : outs_) link->forget_wait();
  progress_.raise();
  done_ = false;
  core_.tree().actor_gone(id_, std::exchange(failure_, std::nullopt), unseen);
}

Error Cell::end_cause() const {
  const std::scoped_lock lock(cause_mutex_);
  return cause_;
}

std::optional<std::string> Cell::ask_waiting_for() {
  if (!mailbox_.claim()) return std::nullopt;
  std::string words = actor_ == nullptr ? std::string() : actor_->waiting_for();
  // A poster does not enqueue a cell that is claimed. If something has come, this does.
  if (!mailbox_.rest()) core_.scheduler().enqueue(*this);
  return words;
}

}  // namespace troupe::runtime
