#pragma once

// How the root actor of a node answers those who ask something of it from outside; they ask by
// request() (ask.h).

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

// What was decided of those that have asked a gate, on its way there. Any thread.
class RequestAnswers {
 public:
  // `wake` is called for every answer, until it is closed; it calls nothing of this.
  explicit RequestAnswers(std::function<void()> wake) : wake_(std::move(wake)) {}

  void add(ConnectionId asker, Result<std::string> answer);
  std::vector<std::pair<ConnectionId, Result<std::string>>> take();
  // What `wake` needs may go; whatever is answered from here on nobody hears.
  void close();

 private:
  std::mutex mutex_;
  std::function<void()> wake_;  // null: closed
  std::vector<std::pair<ConnectionId, Result<std::string>>> answers_;
};

// Its holder owes an answer. Destroying it without one is a refusal, since nobody is left to
// decide. Used by one thread at a time; it may outlive the one that asks.
class RequestReply {
 public:
  using Tell = std::function<void(Result<std::string>)>;

  // `tell` is called once, by any thread.
  explicit RequestReply(Tell tell) : tell_(std::move(tell)) {}
  ~RequestReply();
  RequestReply(const RequestReply&) = delete;
  RequestReply& operator=(const RequestReply&) = delete;

  // What was done, for people, or why it is not. The first word counts.
  void answer(Result<std::string> answer);

 private:
  Tell tell_;  // null: answered
};

// What the Gate, or a page, tells the root actor of the plan's first node. Names are as the asker
// wrote them, and may mean nothing.
struct RequestAsked {
  static constexpr std::string_view kName = "request-asked";
  HeadRequest request;
  std::string by;  // who asks, for people
  std::shared_ptr<RequestReply> reply;
};

}  // namespace troupe::runtime
