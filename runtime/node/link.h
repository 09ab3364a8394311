#pragma once

// The two ends of a credit-bounded edge between actors, and the edge within one process, which has
// both. remote_link.h has those of an edge between nodes.

#include <atomic>
#include <cstdint>

#include "runtime/message.h"
#include "runtime/plan.h"

namespace troupe::runtime {

class Cell;

// True if a message of `bytes` fits beside the messages that are out. Anything fits on an empty
// link: a message larger than all byte credits goes alone.
inline bool credit_admits(std::int64_t bytes, std::int64_t messages_out, std::int64_t bytes_out,
                          std::int64_t message_credits, std::int64_t byte_credits) {
  if (messages_out == 0) return true;
  return messages_out < message_credits && bytes <= byte_credits - bytes_out;
}

// The sending end of a link to this node or another one: the account of its credits, and the sender
// that waits for them. The sender's thread takes credit and passes the message on. Any thread may
// give credits back.
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
  // Sender's thread. As Context::in_flight and Context::use_credits.
  std::int64_t in_flight() const;
  void use_credits(std::int64_t messages);
  // Sender's thread: a failed send is no longer waited for (the sender ended).
  void forget_wait();

  // Sender's thread. As Context::meet.
  virtual void meet() {}

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

  // By what the sender has heard of returns, and after it has looked anew.
  bool admits(std::int64_t bytes) const;
  bool admits_after_refresh(std::int64_t bytes);
  bool find_credit(std::int64_t bytes);
  void notify_sender();

  const LinkPlan plan_;
  Cell& from_;
  const PortId port_;
  std::atomic<std::int64_t> message_credits_;  // of those of the plan; the sender's thread writes

  // The sender's thread writes these, all of them totals since the link began.
  alignas(64) std::int64_t heard_messages_ = 0;  // of the returns below
  std::int64_t heard_bytes_ = 0;
  std::atomic<std::int64_t> sent_messages_{0};
  std::atomic<std::int64_t> sent_bytes_{0};
  std::atomic<std::int64_t> dropped_{0};

  // Totals given back, by anyone, and the size of the message the sender waits to send.
  alignas(64) std::atomic<std::int64_t> returned_messages_{0};
  std::atomic<std::int64_t> returned_bytes_{0};
  std::atomic<std::int64_t> wanted_bytes_{kNotWaiting};
  std::atomic<std::int64_t> undelivered_{0};
};

// The receiving end of a link from this node or another one: gathers the credits that the receiver
// gives back, and counts the messages that wait in its mailbox.
//
// While the receiver runs, its returns are gathered and handed over in lots (at a quarter of the
// credits, and when its slice ends), which keeps shared counters and the wire out of the path of
// each message.
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

// An edge between two actors of one process: the sender's thread delivers into the receiver's
// mailbox.
class Link final : public Outlet, public Inlet {
 public:
  // See Outlet and Inlet.
  Link(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port, Cell& to);

  // See Origin.
  void give_back(std::int64_t bytes) override { take_back(bytes); }
  void count_queued(std::int64_t change) override { count_waiting(change); }

  // Any thread; figures may be a moment old.
  LinkStats stats() const;

 private:
  void pass_on(Message&& message) override;
  void hand_over(std::int64_t messages, std::int64_t bytes) override {
    credit_back(messages, bytes);
  }
};

}  // namespace troupe::runtime
