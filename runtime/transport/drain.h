#pragma once

// How the root actor of a node answers those who ask from outside that a member leave the run; they
// ask by drain() (ask.h).

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

// What was decided of those that have asked a gate, on its way there. Any thread.
class DrainAnswers {
 public:
  // `wake` is called for every answer, until it is closed; it calls nothing of this.
  explicit DrainAnswers(std::function<void()> wake) : wake_(std::move(wake)) {}

  void add(ConnectionId asker, Result<void> answer);
  std::vector<std::pair<ConnectionId, Result<void>>> take();
  // What `wake` needs may go; whatever is answered from here on nobody hears.
  void close();

 private:
  std::mutex mutex_;
  std::function<void()> wake_;  // null: closed
  std::vector<std::pair<ConnectionId, Result<void>>> answers_;
};

// One of them: whoever holds it owes an answer, and destroying it without one is a refusal, since
// nobody is left to decide. Used by one thread at a time; it may outlive the gate.
class DrainReply {
 public:
  DrainReply(std::shared_ptr<DrainAnswers> answers, ConnectionId asker)
      : answers_(std::move(answers)), asker_(asker) {}
  ~DrainReply();
  DrainReply(const DrainReply&) = delete;
  DrainReply& operator=(const DrainReply&) = delete;

  // The node has left, or why it does not. The first word counts.
  void answer(Result<void> answer);

 private:
  std::shared_ptr<DrainAnswers> answers_;
  const ConnectionId asker_;
  bool answered_ = false;
};

// What the Gate tells the root actor of the plan's first node. `node` is as the asker wrote it, and
// may be none.
struct DrainAsked {
  static constexpr std::string_view kName = "drain-asked";
  std::string node;
  std::string by;  // who asks, for people
  std::shared_ptr<DrainReply> reply;
};

}  // namespace troupe::runtime
