#pragma once

// Counts the requests to end among the signals that carry them. `timeout` signals its child and
// then its whole process group, a terminal signals a whole pipeline, and service managers and batch
// systems signal every process of a run: each is one request that arrives more than once.

#include <chrono>
#include <optional>

#include "runtime/base/clock.h"

namespace troupe::launch {

// Not thread-safe.
class EndRequests {
 public:
  // Signals this close to the one that began a request belong to it.
  static constexpr runtime::Duration kMoment = std::chrono::seconds(1);

  explicit EndRequests(runtime::Duration moment = kMoment) : moment_(moment) {}

  // Takes in a signal that arrives at `now`. Returns the number of the request that it begins,
  // from 1; none if it repeats the one before.
  std::optional<int> hear(runtime::TimePoint now) {
    if (count_ > 0 && now - began_ < moment_) return std::nullopt;
    began_ = now;
    return ++count_;
  }
  int count() const { return count_; }

 private:
  const runtime::Duration moment_;
  runtime::TimePoint began_{0};
  int count_ = 0;
};

}  // namespace troupe::launch
