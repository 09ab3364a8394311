#include "runtime/link.h"

#include <utility>

#include "runtime/cell.h"
#include "runtime/node.h"

namespace troupe::runtime {

Link::Link(const LinkPlan& plan, Cell& from, PortId port, Cell& to)
    : Origin(from.id(), plan.from, plan.to_port),
      plan_(plan),
      from_(from),
      to_(to),
      port_(port),
      window_(plan.message_credits, plan.byte_credits) {}

bool Link::send(Message& message) {
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
  message.attach(*this, true);
  to_.deliver(std::move(message), plan_.lane);
  return true;
}

bool Link::can_send(std::int64_t bytes) {
  return window_.admits(bytes) || admits_after_refresh(bytes);
}

// Messages are read before bytes and written after them, so the window never believes a message
// back whose bytes are still out.
bool Link::admits_after_refresh(std::int64_t bytes) {
  const std::int64_t messages = returned_messages_.load();
  window_.returned(messages, returned_bytes_.load());
  return window_.admits(bytes);
}

// Says that it waits before it looks. The store, the looks, the additions in hand_over and the load
// there are sequentially consistent: either the sender sees the return or the returner sees the
// wait.
bool Link::find_credit(std::int64_t bytes) {
  if (plan_.lane == Lane::kMetrics) return admits_after_refresh(bytes);
  wanted_bytes_.store(bytes);
  if (!admits_after_refresh(bytes)) return false;
  forget_wait();
  return true;
}

void Link::forget_wait() { wanted_bytes_.store(kNotWaiting); }

void Link::give_back(std::int64_t bytes) {
  // An actor on its own thread may compute for seconds before its slice ends: it returns at once.
  if (running_cell != &to_ || to_.own_thread()) {
    hand_over(1, bytes);
    return;
  }
  if (gathered_messages_ == 0) to_.flush_later(*this);
  ++gathered_messages_;
  gathered_bytes_ += bytes;
  if (gathered_messages_ * 4 >= plan_.message_credits ||
      gathered_bytes_ * 4 >= plan_.byte_credits) {
    flush();
  }
}

void Link::flush() {
  if (gathered_messages_ == 0) return;
  const std::int64_t messages = std::exchange(gathered_messages_, 0);
  hand_over(messages, std::exchange(gathered_bytes_, 0));
}

void Link::hand_over(std::int64_t messages, std::int64_t bytes) {
  returned_bytes_.fetch_add(bytes);
  returned_messages_.fetch_add(messages);
  if (wanted_bytes_.load() != kNotWaiting) notify_sender();
}

void Link::notify_sender() {
  std::int64_t wanted = wanted_bytes_.load();
  if (wanted == kNotWaiting) return;
  const std::int64_t messages_out = sent_messages_.load() - returned_messages_.load();
  const std::int64_t bytes_out = sent_bytes_.load() - returned_bytes_.load();
  const bool fits =
      credit_admits(wanted, messages_out, bytes_out, plan_.message_credits, plan_.byte_credits);
  if (fits && wanted_bytes_.compare_exchange_strong(wanted, kNotWaiting)) {
    from_.notify_credit(port_);
  }
}

bool Link::undelivered() {
  const bool dropped = plan_.lane == Lane::kMetrics;
  (dropped ? dropped_ : undelivered_).fetch_add(1, std::memory_order_relaxed);
  return !dropped;
}

void Link::count_queued(std::int64_t change) {
  const std::int64_t queued = queued_.load(std::memory_order_relaxed) + change;
  queued_.store(queued, std::memory_order_relaxed);
  if (queued > max_queued_.load(std::memory_order_relaxed)) {
    max_queued_.store(queued, std::memory_order_relaxed);
  }
}

LinkStats Link::stats() const {
  LinkStats stats;
  stats.plan = plan_;
  const std::int64_t returned_messages = returned_messages_.load();
  const std::int64_t returned_bytes = returned_bytes_.load();
  stats.sent = sent_messages_.load();
  stats.in_use_messages = stats.sent - returned_messages;
  stats.in_use_bytes = sent_bytes_.load() - returned_bytes;
  stats.queued = queued_.load();
  stats.max_queued = max_queued_.load();
  stats.dropped = dropped_.load();
  stats.undelivered = undelivered_.load();
  return stats;
}

}  // namespace troupe::runtime
