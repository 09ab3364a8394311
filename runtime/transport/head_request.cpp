#include "runtime/transport/head_request.h"

namespace troupe::runtime {

void RequestAnswers::add(ConnectionId asker, Result<std::string> answer) {
  const std::scoped_lock lock(mutex_);
  if (!wake_) return;
  answers_.emplace_back(asker, std::move(answer));
  wake_();
}

std::vector<std::pair<ConnectionId, Result<std::string>>> RequestAnswers::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(answers_, {});
}

void RequestAnswers::close() {
  const std::scoped_lock lock(mutex_);
  wake_ = nullptr;
}

RequestReply::~RequestReply() {
  answer(Error{ErrorKind::kLostPeers, "the run has ended, and its members with it"});
}

void RequestReply::answer(Result<std::string> answer) {
  const Tell tell = std::exchange(tell_, nullptr);
  if (tell) tell(std::move(answer));
}

}  // namespace troupe::runtime
