#pragma once

// Questions to live runs. However many ask, a run is asked once at a time, and what it said is good
// for a second. One that has lost a question is asked again by who comes after its time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "telemetry/run_source.h"

namespace troupe::telemetry {

// One thread; answers are brought to it by `post`.
class RunQuestions {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Waiter = std::function<void(const runtime::Result<Text>&)>;
  using Post = std::function<void(std::function<void()>)>;
  using Ask = std::function<void(RunSource::Answer)>;
  using Time = runtime::TimePoint;

  // `post`: any thread; runs what it is given on this object's thread, if there still is one.
  // `asking_time`: what a run has to answer.
  RunQuestions(Post post, runtime::Duration asking_time)
      : post_(std::move(post)), asking_time_(asking_time) {}

  // `question` tells questions apart. The waiter is called once, here or later, or never where the
  // run does not answer. Waiters are kept until then: whoever gives up stays on the list.
  void ask(std::uint64_t question, const Ask& ask, Waiter waiter, Time now);
  // Forgets answers that are no longer good: that of a long run is tens of megabytes.
  void tidy(Time now);
  // Whether there is an answer to forget.
  bool keeps_answers() const;

 private:
  struct Question {
    bool open = false;
    std::uint64_t round = 0;
    Time asked{};
    std::vector<Waiter> waiters;
    Text answer;
    Time answered{};
  };
  void take(std::uint64_t question, std::uint64_t round, runtime::Result<std::string> answer);

  Post post_;
  const runtime::Duration asking_time_;
  std::map<std::uint64_t, Question> questions_;
};

}  // namespace troupe::telemetry
