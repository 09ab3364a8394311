#include "runtime/node/outlet.h"

#include <utility>

#include "runtime/node/cell.h"
#include "runtime/node/node.h"

namespace troupe::runtime {

Outlet::Outlet(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port)
    : Origin(from.id(), plan.from, plan.to_port, link + 1),
      plan_(plan),
      from_(from),
      port_(port),
      window_(plan.message_credits, plan.byte_credits) {}

bool Outlet::send(Message& message) {
  CHECK(!message.empty(), "an empty message was sent");
  // Sent on along the link it came by: its own credit must be back before it can be taken again.
  if (message.origin_ == this) message.release_credit();
  const std::int64_t bytes = message.bytes();
  if (!window_.admits(bytes) && !find_credit(bytes)) {
    if (plan_.lane != Lane::kMetrics) return false;
    dropped_.fetch_add(1, std::memory_order_relaxed);
    message = Message();
    return true;
  }
  message.release_credit();
  window_.sent(bytes);
  sent_bytes_.store(window_.sent_bytes(), std::memory_order_relaxed);
  sent_messages_.store(window_.sent_messages(), std::memory_order_relaxed);
  const auto number = static_cast<std::uint64_t>(window_.sent_messages());
  message.attach(*this, true, number);
  from_.trace().sent({trace_link(), number}, bytes);
  pass_on(std::move(message));
  return true;
}

bool Outlet::can_send(std::int64_t bytes) {
  return window_.admits(bytes) || admits_after_refresh(bytes);
}

// Messages are read before bytes and written after them, so the window never believes a message
// back whose bytes are still out.
bool Outlet::admits_after_refresh(std::int64_t bytes) {
  const std::int64_t messages = returned_messages_.load();
  window_.returned(messages, returned_bytes_.load());
  return window_.admits(bytes);
}

// The sender announces that it waits before it looks for credit. The store, the looks, the
// additions in credit_back and the load there are sequentially consistent: either the sender sees
// the return or the returner sees the wait.
bool Outlet::find_credit(std::int64_t bytes) {
  if (plan_.lane == Lane::kMetrics) return admits_after_refresh(bytes);
  wanted_bytes_.store(bytes);
  if (!admits_after_refresh(bytes)) return false;
  forget_wait();
  return true;
}

void Outlet::forget_wait() { wanted_bytes_.store(kNotWaiting); }

void Outlet::credit_back(std::int64_t messages, std::int64_t bytes) {
  returned_bytes_.fetch_add(bytes);
  returned_messages_.fetch_add(messages);
  if (wanted_bytes_.load() != kNotWaiting) notify_sender();
}

void Outlet::notify_sender() {
  std::int64_t wanted = wanted_bytes_.load();
  if (wanted == kNotWaiting) return;
  const std::int64_t messages_out = sent_messages_.load() - returned_messages_.load();
  const std::int64_t bytes_out = sent_bytes_.load() - returned_bytes_.load();
  // Several returners may come here at once. The exchange lets one of them notify the sender.
  const bool fits =
      credit_admits(wanted, messages_out, bytes_out, plan_.message_credits, plan_.byte_credits);
  if (fits && wanted_bytes_.compare_exchange_strong(wanted, kNotWaiting)) {
    from_.post(CreditSignal{port_});
  }
}

bool Outlet::undelivered() {
  const bool dropped = plan_.lane == Lane::kMetrics;
  (dropped ? dropped_ : undelivered_).fetch_add(1, std::memory_order_relaxed);
  return !dropped;
}

LinkStats Outlet::sending_stats() const {
  LinkStats stats;
  stats.plan = plan_;
  const std::int64_t returned_messages = returned_messages_.load();
  const std::int64_t returned_bytes = returned_bytes_.load();
  stats.sent = sent_messages_.load();
  stats.in_use_messages = stats.sent - returned_messages;
  stats.in_use_bytes = sent_bytes_.load() - returned_bytes;
  stats.dropped = dropped_.load();
  stats.undelivered = undelivered_.load();
  return stats;
}

}  // namespace troupe::runtime
