#pragma once

// A credit-bounded edge between two actors of one process.
//
// The sender's thread takes credit and delivers into the receiver's mailbox; whoever destroys the
// message gives the credit back. While the receiver runs, its returns are gathered and handed over
// in lots (at a quarter of the credits, and when its slice ends), which keeps the shared counters
// out of the path of each message.

#include <atomic>
#include <cstdint>

#include "runtime/credit_window.h"
#include "runtime/message.h"
#include "runtime/plan.h"

namespace troupe::runtime {

class Cell;
struct LinkStats;

class Link final : public Origin {
 public:
  // `port` is the position among the sender's out ports. The cells outlive the link's last message.
  Link(const LinkPlan& plan, Cell& from, PortId port, Cell& to);

  const LinkPlan& plan() const { return plan_; }
  Cell& from() const { return from_; }
  Cell& to() const { return to_; }

  // Sender's thread. As Context::send.
  bool send(Message& message);
  bool can_send(std::int64_t bytes);
  // Sender's thread: a failed send is no longer waited for (the sender ended).
  void forget_wait();

  // See Origin.
  void give_back(std::int64_t bytes) override;
  void count_queued(std::int64_t change) override;
  // A metrics link counts the message as dropped and does not want it back.
  bool undelivered() override;

  // Receiver's thread: hands over what it has gathered.
  void flush();

  // Any thread; figures may be a moment old.
  bool sender_waits() const { return wanted_bytes_.load() >= 0; }
  LinkStats stats() const;

 private:
  static constexpr std::int64_t kNotWaiting = -1;

  bool admits_after_refresh(std::int64_t bytes);
  bool find_credit(std::int64_t bytes);
  void hand_over(std::int64_t messages, std::int64_t bytes);
  void notify_sender();

  const LinkPlan plan_;
  Cell& from_;
  Cell& to_;
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

  // The receiver's thread writes these.
  alignas(64) std::int64_t gathered_messages_ = 0;
  std::int64_t gathered_bytes_ = 0;
  std::atomic<std::int64_t> queued_{0};
  std::atomic<std::int64_t> max_queued_{0};
};

}  // namespace troupe::runtime
