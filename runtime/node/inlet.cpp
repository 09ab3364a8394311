#include "runtime/node/inlet.h"

#include <utility>

#include "runtime/node/cell.h"
#include "runtime/node/node.h"

namespace troupe::runtime {

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

}  // namespace troupe::runtime
