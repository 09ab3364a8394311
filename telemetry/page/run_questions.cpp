#include "telemetry/page/run_questions.h"

namespace troupe::telemetry {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

Result<RunQuestions::Text> shared(Result<std::string> answer) {
  if (!answer.ok()) return answer.error();
  return std::make_shared<const std::string>(std::move(*answer));
}

}  // namespace

void RunQuestions::ask(std::uint64_t id, const Ask& ask, Waiter waiter, Time now) {
  Question& question = questions_[id];
  question.waiters.push_back(std::move(waiter));
  if (question.waiters.size() > 1) return;
  question.asked = now;
  const std::uint64_t round = ++question.round;
  ask([this, post = post_, id, round](Result<std::string> answer) {
    post([this, id, round, brought = shared(std::move(answer))] { take(id, round, brought); });
  });
}

void RunQuestions::give_up(Time now) {
  for (auto& [id, question] : questions_) {
    if (question.waiters.empty() || now - question.asked < patience_) continue;
    take(id, question.round, Error{ErrorKind::kLostPeers, "the run has not answered in time"});
  }
}

void RunQuestions::take(std::uint64_t id, std::uint64_t round, Result<Text> answer) {
  Question& question = questions_[id];
  if (round != question.round) return;  // answered already, or given up
  ++question.round;
  for (const Waiter& waiter : std::exchange(question.waiters, {})) waiter(answer);
}

}  // namespace troupe::telemetry
