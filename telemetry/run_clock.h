#pragma once

// How fast a run gets on and what it has cost, from the times at which it told things.

#include <cstdint>
#include <deque>
#include <optional>

namespace troupe::telemetry {

// One thread at a time. Times are seconds since 1970. A time that goes back, as when the clock was
// set, counts as no time.
class RunClock {
 public:
  // A session begins. The time since the last one costs nothing.
  void begin(double time);
  // A record tells its time. Until then so many nodes computed, and kept so many cores busy.
  void advance(double time, std::uint64_t computing, double cores);
  // An iteration of so many events has ended.
  void iteration(double time, std::uint64_t events);

  double began() const { return began_; }
  double newest() const { return newest_; }
  // Over the iterations of the last kWindow seconds, and over the last two at least. 0 before that.
  double events_per_second() const;
  std::optional<double> seconds_per_iteration() const;
  double node_hours() const { return node_seconds_ / 3600.0; }
  double core_hours() const { return core_seconds_ / 3600.0; }

  static constexpr double kWindow = 10.0;

 private:
  struct Ended {
    double time = 0.0;
    std::uint64_t events = 0;
  };
  double began_ = 0.0, newest_ = 0.0;
  double node_seconds_ = 0.0, core_seconds_ = 0.0;
  std::deque<Ended> ended_;
};

}  // namespace troupe::telemetry
