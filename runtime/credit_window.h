#pragma once

// The sender's account of one link: pure arithmetic, shared by every transport.
//
// Returns are totals since the link began, not increments, so that a return that is heard twice,
// late or out of order changes nothing.

#include <algorithm>
#include <cstdint>

namespace troupe::runtime {

// True if a message of `bytes` fits beside the messages that are out. Anything fits on an empty
// link: a message larger than all byte credits goes alone.
inline bool credit_admits(std::int64_t bytes, std::int64_t messages_out, std::int64_t bytes_out,
                          std::int64_t message_credits, std::int64_t byte_credits) {
  if (messages_out == 0) return true;
  return messages_out < message_credits && bytes <= byte_credits - bytes_out;
}

class CreditWindow {
 public:
  // Both at least 1.
  CreditWindow(std::int64_t message_credits, std::int64_t byte_credits)
      : message_credits_(message_credits), byte_credits_(byte_credits) {}

  // True if a message of `bytes` may go out now; see credit_admits.
  bool admits(std::int64_t bytes) const {
    return credit_admits(bytes, messages_out(), bytes_out(), message_credits_, byte_credits_);
  }

  // One message of `bytes` went out; admits(bytes) held.
  void sent(std::int64_t bytes) {
    ++sent_messages_;
    sent_bytes_ += bytes;
  }

  // The receiver has given back that much since the link began.
  void returned(std::int64_t total_messages, std::int64_t total_bytes) {
    returned_messages_ = std::max(returned_messages_, total_messages);
    returned_bytes_ = std::max(returned_bytes_, total_bytes);
  }

  std::int64_t sent_messages() const { return sent_messages_; }
  std::int64_t sent_bytes() const { return sent_bytes_; }
  // As far as the sender has heard.
  std::int64_t messages_out() const { return sent_messages_ - returned_messages_; }
  std::int64_t bytes_out() const { return sent_bytes_ - returned_bytes_; }

 private:
  std::int64_t message_credits_;
  std::int64_t byte_credits_;
  std::int64_t sent_messages_ = 0;
  std::int64_t sent_bytes_ = 0;
  std::int64_t returned_messages_ = 0;
  std::int64_t returned_bytes_ = 0;
};

}  // namespace troupe::runtime
