#include "telemetry/run_clock.h"

#include <algorithm>

namespace troupe::telemetry {

void RunClock::begin(double time) {
  if (began_ == 0.0) began_ = time;
  newest_ = time;
  ended_.clear();
}

void RunClock::advance(double time, std::uint64_t computing, double cores) {
  if (time <= 0.0) return;
  if (newest_ == 0.0) return begin(time);
  const double passed = std::max(time - newest_, 0.0);
  node_seconds_ += passed * static_cast<double>(computing);
  core_seconds_ += passed * cores;
  newest_ = std::max(newest_, time);
}

void RunClock::iteration(double time, std::uint64_t events) {
  ended_.push_back({time, events});
  while (ended_.size() > 2 && (ended_[1].time < time - kWindow || ended_.size() > 4096))
    ended_.pop_front();
}

std::optional<double> RunClock::seconds_per_iteration() const {
  if (ended_.size() < 2) return std::nullopt;
  const double passed = ended_.back().time - ended_.front().time;
  if (passed <= 0.0) return std::nullopt;
  return passed / static_cast<double>(ended_.size() - 1);
}

double RunClock::events_per_second() const {
  const auto seconds = seconds_per_iteration();
  if (!seconds) return 0.0;
  std::uint64_t events = 0;
  for (std::size_t i = 1; i < ended_.size(); ++i) events += ended_[i].events;
  return static_cast<double>(events) / (*seconds * static_cast<double>(ended_.size() - 1));
}

}  // namespace troupe::telemetry
