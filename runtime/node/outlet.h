#pragma once

// The sending end of a link to this node or another one: the account of its credits, and the sender
// that waits for them.
//
// The sender's thread takes credit and passes the message on. Any thread may give credits back.

#include <atomic>
#include <cstdint>

#include "runtime/credit_window.h"
#include "runtime/message.h"
#include "runtime/plan.h"

namespace troupe::runtime {

class Cell;

class Outlet : public Origin {
 public:
  // `link`: position in the plan of all nodes. `port` is the position among the sender's out ports.
  // The cell outlives the last message.
  Outlet(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port);

  const LinkPlan& plan() const { return plan_; }
  Cell& from() const { return from_; }

  // Sender's thread. As Context::send.
  bool send(Message& message);
  bool can_send(std::int64_t bytes);
  // Sender's thread: a failed send is no longer waited for (the sender ended).
  void forget_wait();

  // See Origin. A metrics link counts the message as dropped and does not want it back.
  bool undelivered() override;

  // Any thread; figures may be a moment old.
  bool sender_waits() const { return wanted_bytes_.load() >= 0; }
  LinkStats sending_stats() const;

 protected:
  // Sender's thread: the message, which holds its credit of this link, is on its way.
  virtual void pass_on(Message&& message) = 0;

  // Any thread: that much is free again.
  void credit_back(std::int64_t messages, std::int64_t bytes);

 private:
  static constexpr std::int64_t kNotWaiting = -1;

  bool admits_after_refresh(std::int64_t bytes);
  bool find_credit(std::int64_t bytes);
  void notify_sender();

  const LinkPlan plan_;
  Cell& from_;
  const PortId port_;

  // The sender's thread writes these; the atomics are what others may read of the window.
  alignas(64) CreditWindow window_;
  std::atomic<std::int64_t> sent_messages_{0};
  std::atomic<std::int64_t> sent_bytes_{0};
  std::atomic<std::int64_t> dropped_{0};

  // Totals given back, by anyone, and the size of the message the sender waits to send.
  alignas(64) std::atomic<std::int64_t> returned_messages_{0};
  std::atomic<std::int64_t> returned_bytes_{0};
  std::atomic<std::int64_t> wanted_bytes_{kNotWaiting};
  std::atomic<std::int64_t> undelivered_{0};
};

}  // namespace troupe::runtime
