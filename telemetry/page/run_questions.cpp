#include "telemetry/page/run_questions.h"

#include <algorithm>

#include "runtime/base/clock.h"

namespace troupe::telemetry {
namespace {

constexpr auto kGoodFor = std::chrono::seconds(1);
// A run that never answers must not gather them.
constexpr std::size_t kMostWaiters = 1024;

}  // namespace

void RunQuestions::ask(std::uint64_t id, const Ask& ask, Waiter waiter, Time now) {
  Question& question = questions_[id];
  if (question.answer != nullptr && now - question.answered < kGoodFor) {
    return waiter(question.answer);
  }
  question.answer.reset();
  if (question.waiters.size() == kMostWaiters) {
    question.waiters.erase(question.waiters.begin());
  }
  question.waiters.push_back(std::move(waiter));
  // Nobody may have heard the question, or have kept the way to answer it.
  if (question.open && now - question.asked < asking_time_) return;
  question.open = true;
  question.asked = now;
  const std::uint64_t round = ++question.round;
  ask([this, post = post_, id, round](runtime::Result<std::string> answer) {
    auto brought = std::make_shared<runtime::Result<std::string>>(std::move(answer));
    post([this, id, round, brought] { take(id, round, std::move(*brought)); });
  });
}

void RunQuestions::tidy(Time now) {
  for (auto& [id, question] : questions_) {
    if (now - question.answered >= kGoodFor) question.answer.reset();
  }
}

bool RunQuestions::keeps_answers() const {
  return std::any_of(questions_.begin(), questions_.end(),
                     [](const auto& each) { return each.second.answer != nullptr; });
}

void RunQuestions::take(std::uint64_t id, std::uint64_t round,
                        runtime::Result<std::string> answer) {
  Question& question = questions_[id];
  if (!question.open || round != question.round) return;  // it was answered already
  question.open = false;
  const std::vector<Waiter> waiters = std::exchange(question.waiters, {});
  if (!answer.ok()) {
    for (const Waiter& waiter : waiters) waiter(answer.error());
    return;
  }
  const auto text = std::make_shared<const std::string>(std::move(*answer));
  question.answer = text;
  question.answered = runtime::steady_now();
  for (const Waiter& waiter : waiters) waiter(text);
}

}  // namespace troupe::telemetry
