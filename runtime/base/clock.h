#pragma once

// Time is handed in, so that tests and the simulator own it.

#include <chrono>
#include <cstdint>

namespace troupe::runtime {

using Duration = std::chrono::nanoseconds;
// Time since an arbitrary start; only differences mean something.
using TimePoint = std::chrono::nanoseconds;
// A time of day, which people and other programs read.
using WallTime = std::chrono::system_clock::time_point;

inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
template <class Unit>
double seconds_since_1970(std::chrono::sys_time<Unit> time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

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

// steady_now() returns the time that SteadyClock reads. Both may be called on any thread.
TimePoint steady_now();
// The machine's time of day, which may be set back.
WallTime wall_now();

// A clock that stands still until it is told to move. One thread.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{0};
};

}  // namespace troupe::runtime
