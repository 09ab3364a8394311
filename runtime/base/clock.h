#pragma once

// Time is handed in, so that tests and the simulator own it.

#include <chrono>
#include <cstdint>

namespace troupe::runtime {

using Duration = std::chrono::nanoseconds;
// Time since an arbitrary start; only differences mean something.
using TimePoint = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never decreases. Any thread.
  virtual TimePoint now() const = 0;
};

// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override;
};

// A clock that stands still until it is told to move. One thread.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{0};
};

}  // namespace troupe::runtime
