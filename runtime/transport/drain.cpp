#include "runtime/transport/drain.h"

namespace troupe::runtime {

void DrainAnswers::add(ConnectionId asker, Result<void> answer) {
  const std::scoped_lock lock(mutex_);
  if (!wake_) return;
  answers_.emplace_back(asker, std::move(answer));
  wake_();
}

std::vector<std::pair<ConnectionId, Result<void>>> DrainAnswers::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(answers_, {});
}

void DrainAnswers::close() {
  const std::scoped_lock lock(mutex_);
  wake_ = nullptr;
}

DrainReply::~DrainReply() {
  answer(Error{ErrorKind::kLostPeers, "the run has ended, and its members with it"});
}

void DrainReply::answer(Result<void> answer) {
  if (std::exchange(answered_, true)) return;
  answers_->add(asker_, std::move(answer));
}

}  // namespace troupe::runtime
