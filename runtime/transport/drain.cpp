#include "runtime/transport/drain.h"

#include <variant>

#include <fmt/format.h>

#include "runtime/transport/ask.h"

namespace troupe::runtime {

Result<void> drain(Wire& wire, const DrainOptions& options, const Clock& clock) {
  AskOptions ask_options;
  ask_options.address = options.address;
  ask_options.question = pack(options.request);
  ask_options.failure = fmt::format("cannot drain {} at", options.request.node);
  ask_options.within = options.within;
  ask_options.answer_within = options.left_within;
  ask_options.no_answer =
      fmt::format("the head was told, and {} has not left", options.request.node);
  ASSIGN_OR_RETURN(const AnyPacket answer, ask(wire, ask_options, clock));
  if (!std::holds_alternative<Drained>(answer)) return strange_answer(ask_options);
  return {};
}

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
