#include "runtime/node/link.h"

#include <algorithm>
#include <utility>

#include "runtime/node/cell.h"
#include "runtime/node/node.h"

namespace troupe::runtime {

Outlet::Outlet(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port)
    : Origin(from.id(), plan.from, plan.to_port, link + 1),
      plan_(plan),
      from_(from),
      port_(port),
      message_credits_(plan.message_credits) {}

bool Outlet::send(Message& message) {
  CHECK(!message.empty(), "an empty message was sent");
  // Sent on along the link it came by: its own credit must be back before it can be taken again.
  if (message.origin_ == this) message.release_credit();
  const std::int64_t bytes = message.bytes();
  if (!admits(bytes) && !find_credit(bytes)) {
    if (plan_.lane != Lane::kMetrics) return false;
    dropped_.fetch_add(1, std::memory_order_relaxed);
    message = Message();
    return true;
  }
  message.release_credit();
  const std::int64_t messages = sent_messages_.load(std::memory_order_relaxed) + 1;
  sent_bytes_.store(sent_bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  sent_messages_.store(messages, std::memory_order_relaxed);
  const auto number = static_cast<std::uint64_t>(messages);
  message.attach(*this, true, number);
  from_.trace().sent({trace_link(), number}, bytes);
  pass_on(std::move(message));
  return true;
}

bool Outlet::can_send(std::int64_t bytes) { return admits(bytes) || admits_after_refresh(bytes); }

std::int64_t Outlet::in_flight() const { return sent_messages_.load() - returned_messages_.load(); }

void Outlet::use_credits(std::int64_t messages) {
  CHECK(messages > 0, "a link with one credit at least");
  message_credits_.store(std::min(messages, plan_.message_credits));
  notify_sender();
}

bool Outlet::admits(std::int64_t bytes) const {
  return credit_admits(bytes, sent_messages_.load(std::memory_order_relaxed) - heard_messages_,
                       sent_bytes_.load(std::memory_order_relaxed) - heard_bytes_,
                       message_credits_.load(std::memory_order_relaxed), plan_.byte_credits);
}

// Messages are read before bytes and written after them, so the sender never believes a message
// back whose bytes are still out.
bool Outlet::admits_after_refresh(std::int64_t bytes) {
  heard_messages_ = returned_messages_.load();
  heard_bytes_ = returned_bytes_.load();
  return admits(bytes);
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
      credit_admits(wanted, messages_out, bytes_out, message_credits_.load(), plan_.byte_credits);
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
  stats.plan.message_credits = message_credits_.load();
  const std::int64_t returned_messages = returned_messages_.load();
  const std::int64_t returned_bytes = returned_bytes_.load();
  stats.sent = sent_messages_.load();
  stats.in_use_messages = stats.sent - returned_messages;
  stats.in_use_bytes = sent_bytes_.load() - returned_bytes;
  stats.dropped = dropped_.load();
  stats.undelivered = undelivered_.load();
  return stats;
}

Inlet::Inlet(const LinkPlan& plan, Cell& to)
    : to_(to), message_credits_(plan.message_credits), byte_credits_(plan.byte_credits) {}

void Inlet::take_back(std::int64_t bytes) {
  // An actor on its own thread may compute for seconds before its slice ends: it returns at once.
  if (running_cell != &to_ || to_.plan().own_thread) {
    hand_over(1, bytes);
    return;
  }
  // Returns are gathered until a quarter of the credits is back. The slice's end flushes the rest,
  // so a sender never waits for credits that lie here.
  if (gathered_messages_ == 0) to_.flush_later(*this);
  ++gathered_messages_;
  gathered_bytes_ += bytes;
  if (gathered_messages_ * 4 >= message_credits_ || gathered_bytes_ * 4 >= byte_credits_) flush();
}

void Inlet::flush() {
  if (gathered_messages_ == 0) return;
  const std::int64_t messages = std::exchange(gathered_messages_, 0);
  hand_over(messages, std::exchange(gathered_bytes_, 0));
}

void Inlet::count_waiting(std::int64_t change) {
  const std::int64_t queued = queued_.load(std::memory_order_relaxed) + change;
  queued_.store(queued, std::memory_order_relaxed);
  if (queued > max_queued_.load(std::memory_order_relaxed)) {
    max_queued_.store(queued, std::memory_order_relaxed);
  }
}

void Inlet::add_receiving_stats(LinkStats& stats) const {
  stats.queued = queued_.load();
  stats.max_queued = max_queued_.load();
}

Link::Link(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port, Cell& to)
    : Outlet(link, plan, from, port), Inlet(plan, to) {}

void Link::pass_on(Message&& message) { to().deliver(std::move(message), plan().lane); }

LinkStats Link::stats() const {
  LinkStats stats = sending_stats();
  add_receiving_stats(stats);
  return stats;
}

}  // namespace troupe::runtime
