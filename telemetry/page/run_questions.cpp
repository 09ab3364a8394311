#include <utility>  // Asio forgets it

#include "telemetry/page/run_questions.h"

#include <boost/asio/post.hpp>

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

void RunQuestions::ask(const RunSource::Question& question, Waiter waiter, Time now) {
  Asked& asked = asked_[&question];
  asked.waiters.push_back(std::move(waiter));
  if (asked.waiters.size() > 1) return;
  asked.since = now;
  question([this, io = io_, id = &question, round = ++asked.round](Result<std::string> answer) {
    boost::asio::post(
        *io, [this, id, round, brought = shared(std::move(answer))] { take(id, round, brought); });
  });
}

void RunQuestions::give_up(Time now) {
  for (auto& [question, asked] : asked_) {
    if (asked.waiters.empty() || now - asked.since < patience_) continue;
    take(question, asked.round, Error{ErrorKind::kLostPeers, "the run has not answered in time"});
  }
}

void RunQuestions::take(const RunSource::Question* question, std::uint64_t round,
                        Result<Text> answer) {
  Asked& asked = asked_[question];
  if (round != asked.round) return;  // answered already, or given up
  ++asked.round;
  for (const Waiter& waiter : std::exchange(asked.waiters, {})) waiter(answer);
}

}  // namespace troupe::telemetry
