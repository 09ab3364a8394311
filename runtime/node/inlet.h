#pragma once

// The receiving end of a link from this node or another one: gathers the credits that the receiver
// gives back, and counts the messages that wait in its mailbox.
//
// While the receiver runs, its returns are gathered and handed over in lots (at a quarter of the
// credits, and when its slice ends), which keeps shared counters and the wire out of the path of
// each message.

#include <atomic>
#include <cstdint>

#include "runtime/plan.h"

namespace troupe::runtime {

class Cell;

class Inlet {
 public:
  // The cell outlives the last message.
  Inlet(const LinkPlan& plan, Cell& to);
  Inlet(const Inlet&) = delete;
  Inlet& operator=(const Inlet&) = delete;

  Cell& to() const { return to_; }

  // Receiver's thread: hands over what it has gathered.
  void flush();

  // Any thread: fills in the receiver's figures of the link.
  void add_receiving_stats(LinkStats& stats) const;

 protected:
  ~Inlet() = default;

  // Any thread: one message of `bytes` gave its credit back.
  void take_back(std::int64_t bytes);
  // Receiver's thread; see Origin.
  void count_waiting(std::int64_t change);
  // Any thread: that much is free again for the sender.
  virtual void hand_over(std::int64_t messages, std::int64_t bytes) = 0;

 private:
  Cell& to_;
  const std::int64_t message_credits_;
  const std::int64_t byte_credits_;

  // The receiver's thread writes these.
  alignas(64) std::int64_t gathered_messages_ = 0;
  std::int64_t gathered_bytes_ = 0;
  std::atomic<std::int64_t> queued_{0};
  std::atomic<std::int64_t> max_queued_{0};
};

}  // namespace troupe::runtime
