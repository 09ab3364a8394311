#pragma once

// Messages for one out port that wait for credit, in the order in which they were posted. One
// thread.

#include <cstdint>
#include <deque>
#include <utility>

#include "runtime/actor.h"

namespace troupe::actors {

class Outbox {
 public:
  explicit Outbox(runtime::PortId port = {}) : port_(port) {}

  // Whether the plan wires the port; only then may messages be posted.
  bool valid() const { return port_.valid(); }
  // Appends a message; flush() sends it.
  void post(runtime::Message message) {
    bytes_ += message.bytes();
    messages_.push_back(std::move(message));
  }
  // Sends what credit allows. True: nothing waits any more.
  bool flush(runtime::Context& context) {
    for (; !messages_.empty(); messages_.pop_front()) {
      const std::int64_t bytes = messages_.front().bytes();
      if (!context.send(port_, messages_.front())) return false;
      bytes_ -= bytes;
      ++sent_;
    }
    return true;
  }
  void clear() {
    messages_.clear();
    bytes_ = 0;
  }

  bool empty() const { return messages_.empty(); }
  std::int64_t bytes() const { return bytes_; }  // of the messages that wait
  // How many messages were sent since the last forget_sent().
  std::uint64_t sent() const { return sent_; }
  void forget_sent() { sent_ = 0; }

 private:
  runtime::PortId port_;
  std::deque<runtime::Message> messages_;
  std::int64_t bytes_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace troupe::actors
