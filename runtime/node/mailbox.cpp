#include "runtime/node/mailbox.h"

#include <utility>

namespace troupe::runtime {

// Under the lock. Returns kWake to the one poster that must enqueue the actor.
Mailbox::Posted Mailbox::schedule(std::uint32_t bit) {
  const std::uint32_t fresh = fresh_.load(std::memory_order_relaxed);
  if ((fresh & bit) == 0) fresh_.store(fresh | bit, std::memory_order_relaxed);
  return std::exchange(scheduled_, true) ? Posted::kQueued : Posted::kWake;
}

Mailbox::Posted Mailbox::post(Message&& message, Lane lane) {
  const auto index = index_of(lane);
  const std::scoped_lock lock(mutex_);
  if (!open_) return Posted::kClosed;
  incoming_[index].push_back(std::move(message));
  return schedule(1u << index);
}

Mailbox::Posted Mailbox::post(Signal&& signal) {
  const std::scoped_lock lock(mutex_);
  if (!open_) return Posted::kClosed;
  incoming_signals_.push_back(std::move(signal));
  return schedule(kSignals);
}

Mailbox::Posted Mailbox::open() {
  const std::scoped_lock lock(mutex_);
  CHECK(!open_, "the mailbox of a live actor was opened again");
  open_ = true;
  incoming_signals_.emplace_back(StartSignal{});
  return schedule(kSignals);
}

// Swaps the whole incoming queue for the lot that was read. The bit is looked at without the lock,
// so an empty lane costs one load. A bit that is set too late is seen by rest(), which looks under
// the lock.
template <class T>
bool Mailbox::refill(Lot<T>& lot, std::vector<T>& incoming, std::uint32_t bit) {
  const std::uint32_t fresh = fresh_.load(std::memory_order_relaxed);
  if ((fresh & bit) == 0) return false;
  lot.items.clear();
  lot.next = 0;
  const std::scoped_lock lock(mutex_);
  lot.items.swap(incoming);
  fresh_.store(fresh_.load(std::memory_order_relaxed) & ~bit, std::memory_order_relaxed);
  return true;
}

Signal* Mailbox::take_signal() {
  if (signals_.read() && !refill(signals_, incoming_signals_, kSignals)) return nullptr;
  return &signals_.items[signals_.next++];
}

// Lanes are numbered by priority, so the first that has a message is served.
Message* Mailbox::take_message() {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Lot<Message>& lot = lots_[lane];
    if (lot.read()) {
      if (!refill(lot, incoming_[lane], 1u << lane)) continue;
      for (const Message& message : lot.items) message.origin()->count_queued(1);
    }
    Message* message = &lot.items[lot.next++];
    message->origin()->count_queued(-1);
    lane_ = static_cast<Lane>(lane);
    return message;
  }
  return nullptr;
}

Mailbox::Remains Mailbox::close() {
  Remains remains;
  const std::scoped_lock lock(mutex_);
  open_ = false;
  fresh_.store(0, std::memory_order_relaxed);
  const auto move_rest = [](auto& from, std::size_t first, auto& to) {
    for (std::size_t i = first; i < from.size(); ++i) to.push_back(std::move(from[i]));
    from.clear();
  };
  move_rest(signals_.items, std::exchange(signals_.next, 0), remains.signals);
  move_rest(incoming_signals_, 0, remains.signals);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Lot<Message>& lot = lots_[lane];
    for (std::size_t i = lot.next; i < lot.items.size(); ++i) {
      lot.items[i].origin()->count_queued(-1);
    }
    move_rest(lot.items, std::exchange(lot.next, 0), remains.messages);
    move_rest(incoming_[lane], 0, remains.messages);
  }
  return remains;
}

// A post that came since the last take() has set its bit under this lock, so no message is
// forgotten between the last look and becoming idle.
bool Mailbox::rest() {
  const std::scoped_lock lock(mutex_);
  if (fresh_.load(std::memory_order_relaxed) != 0) return false;
  scheduled_ = false;
  return true;
}

bool Mailbox::claim() {
  const std::scoped_lock lock(mutex_);
  return !std::exchange(scheduled_, true);
}

bool Mailbox::scheduled() const {
  const std::scoped_lock lock(mutex_);
  return scheduled_;
}

}  // namespace troupe::runtime
