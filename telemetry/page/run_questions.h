#pragma once

// Questions to live runs. However many clients ask the same, a run is asked once at a time.

#include <boost/asio/io_context.hpp>
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

// The thread that runs `io`; answers are brought to it.
class RunQuestions {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Waiter = std::function<void(const runtime::Result<Text>&)>;
  using Time = runtime::TimePoint;

  // Answers keep `io` alive, since they may come when nobody runs it any more; then they are
  // ignored. `patience`: how long a run has to answer.
  RunQuestions(std::shared_ptr<boost::asio::io_context> io, runtime::Duration patience)
      : io_(std::move(io)), patience_(patience) {}

  // The question outlives this. The waiter is called once, at once or later.
  void ask(const RunSource::Question& question, Waiter waiter, Time now);
  // For this waiter alone, whoever else asks.
  void ask_alone(const RunSource::Question& question, Waiter waiter, Time now) {
    begin(question, nullptr, std::move(waiter), now);
  }
  // Gives up the questions that a run has not answered in time, since it may have lost them. Those
  // who wait are told so, and the next one to come asks again. Later answers are ignored.
  void give_up(Time now);

 private:
  // Under way.
  struct Asked {
    const RunSource::Question* shared;  // null: with nobody
    Time since;
    std::vector<Waiter> waiters;
  };
  void begin(const RunSource::Question& question, const RunSource::Question* shared, Waiter waiter,
             Time now);
  void take(std::uint64_t number, const runtime::Result<Text>& answer);

  const std::shared_ptr<boost::asio::io_context> io_;
  const runtime::Duration patience_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Asked> asked_;  // by number
};

}  // namespace troupe::telemetry
