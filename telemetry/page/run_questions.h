#pragma once

// Questions to live runs. However many clients ask, a run is asked once at a time.

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
  // Gives up the questions that a run has not answered in time, since it may have lost them. Those
  // who wait are told so, and the next one to come asks again.
  void give_up(Time now);

 private:
  struct Asked {
    std::uint64_t round = 0;  // how often it was asked or given up
    Time since{};
    std::vector<Waiter> waiters;  // empty: the question is not under way
  };
  void take(const RunSource::Question* question, std::uint64_t round, runtime::Result<Text> answer);

  const std::shared_ptr<boost::asio::io_context> io_;
  const runtime::Duration patience_;
  std::map<const RunSource::Question*, Asked> asked_;
};

}  // namespace troupe::telemetry
