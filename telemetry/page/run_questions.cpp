#include <utility>  // Asio forgets it

#include "telemetry/page/run_questions.h"

#include <boost/asio/post.hpp>

namespace troupe::telemetry {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

Result<RunQuestions::Text> text_of(Result<std::string> answer) {
  if (!answer.ok()) return answer.error();
  return std::make_shared<const std::string>(std::move(*answer));
}

}  // namespace

void RunQuestions::ask(const RunSource::Question& question, Waiter waiter, Time now) {
  for (auto& [number, asked] : asked_) {
    if (asked.shared == &question) return asked.waiters.push_back(std::move(waiter));
  }
  begin(question, &question, std::move(waiter), now);
}

void RunQuestions::begin(const RunSource::Question& question, const RunSource::Question* shared,
                         Waiter waiter, Time now) {
  const std::uint64_t number = ++last_;
  asked_[number] = {shared, now, {std::move(waiter)}};
  question([this, io = io_, number](Result<std::string> answer) {
    boost::asio::post(
        *io, [this, number, brought = text_of(std::move(answer))] { take(number, brought); });
  });
}

void RunQuestions::give_up(Time now) {
  for (auto next = asked_.begin(); next != asked_.end();) {
    const auto [number, since] = std::pair(next->first, next->second.since);
    ++next;
    if (now - since < patience_) continue;
    take(number, Error{ErrorKind::kLostPeers, "the run has not answered in time"});
  }
}

void RunQuestions::take(std::uint64_t number, const Result<Text>& answer) {
  const auto found = asked_.find(number);
  if (found == asked_.end()) return;  // answered already, or given up
  const std::vector<Waiter> waiters = std::move(found->second.waiters);
  asked_.erase(found);
  for (const Waiter& waiter : waiters) waiter(answer);
}

}  // namespace troupe::telemetry
