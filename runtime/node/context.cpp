#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/actor.h"
#include "runtime/node/cell.h"
#include "runtime/node/node_core.h"

namespace troupe::runtime {
namespace {

Outlet& outlet(const std::vector<Outlet*>& outs, PortId port, const std::string& of) {
  CHECK(static_cast<std::size_t>(port.index) < outs.size(),
        "a port that the plan does not wire, by " + of);
  return *outs[static_cast<std::size_t>(port.index)];
}

}  // namespace

const std::string& Context::name() const { return cell_.plan_.name; }

PortId Context::out(std::string_view out_port) const {
  const auto& names = cell_.out_names_;
  const auto found = std::find(names.begin(), names.end(), out_port);
  if (found == names.end()) return PortId{};
  return PortId{static_cast<std::int32_t>(found - names.begin())};
}

std::span<const std::string> Context::out_ports() const { return cell_.out_names_; }

bool Context::send(PortId out_port, Message& message) {
  return outlet(cell_.outs_, out_port, name()).send(message);
}

bool Context::can_send(PortId out_port, std::int64_t bytes) const {
  return outlet(cell_.outs_, out_port, name()).can_send(bytes);
}

std::int64_t Context::in_flight(PortId out_port) const {
  return outlet(cell_.outs_, out_port, name()).in_flight();
}

void Context::use_credits(PortId out_port, std::int64_t messages) {
  outlet(cell_.outs_, out_port, name()).use_credits(messages);
}

void Context::meet(PortId out_port) { outlet(cell_.outs_, out_port, name()).meet(); }

void Context::go_on_without(const std::string& node) {
  if (Gate* const gate = cell_.core_.gate()) gate->go_on_without(node);
}

void Context::await_another(const std::string& node, const std::string& name) {
  if (Gate* const gate = cell_.core_.gate()) gate->await_another(node, name);
}

void Context::send_control(std::string_view actor, Message message) {
  cell_.core_.send_control(cell_.control_origin_, actor, std::move(message));
}

// The cell notes its timers: one that is cancelled may be on its way already, and the cell passes
// over those that it does not find. It also takes them back when the actor ends.
TimerId Context::after(Duration delay) {
  const TimePoint due = now() + delay;
  const TimerId id = cell_.core_.add_timer(cell_.id_, due);
  cell_.timers_.emplace(id, due);
  return id;
}

void Context::cancel(TimerId id) {
  const auto found = cell_.timers_.find(id);
  if (found == cell_.timers_.end()) return;
  cell_.core_.remove_timer(id, found->second);
  cell_.timers_.erase(found);
}

TimePoint Context::now() const { return cell_.core_.clock().now(); }

Log& Context::log() { return cell_.log_; }

TraceRing& Context::trace() { return cell_.trace_.ring(); }

void Context::post_progress() { cell_.progress_.raise(); }

bool Context::stopping() const { return cell_.stop_asked_.load(std::memory_order_relaxed); }

void Context::finish() { cell_.done_ = true; }

// The first failure stands, and an actor that has finished does not fail any more.
void Context::fail(Error error) {
  if (cell_.done_) return;
  cell_.done_ = true;
  cell_.failure_ = Error{error.kind, name() + ": " + std::move(error.message)};
}

int Context::children() const { return cell_.core_.tree().children(cell_.id_); }

void Context::stop_child(std::string_view name) { cell_.core_.tree().stop_child(cell_.id_, name); }

void Actor::receive(Context& context, Message message) {
  for (const auto& [kind, handler] : handlers_) {
    if (kind == message.kind()) return handler(*this, context, message);
  }
  context.log().warning(fmt::format("drops '{}' of {}: it takes no such message", message.name(),
                                    message.sender_name()));
}

// While a run ends, receivers may end before their senders, so a message that comes back to an
// actor that stops is no news.
void Actor::undeliverable(Context& context, Message message, const Error& cause) {
  if (context.stopping()) return;
  context.log().warning(fmt::format("'{}' came back: {}", message.name(), cause.message));
}

void Actor::stop(Context& context) { context.finish(); }

// An actor that does not decide about its children fails with the first that fails, and lets the
// others finish.
ChildDecision Actor::child_ended(Context& /*context*/, const ChildEnd& end) {
  return end.error ? ChildDecision::kEscalate : ChildDecision::kIgnore;
}

}  // namespace troupe::runtime
