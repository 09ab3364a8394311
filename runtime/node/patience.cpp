#include "runtime/node/patience.h"

#include <algorithm>
#include <cmath>

namespace troupe::runtime {
namespace {

constexpr double kHalfLifeSeconds = 60.0;
constexpr double kGapsAllowed = 3.0;

}  // namespace

void FadingMaximum::add(double value, TimePoint now) {
  value_ = std::max(value, this->value(now));
  at_ = now;
}

double FadingMaximum::value(TimePoint now) const {
  const std::chrono::duration<double> age = now - at_;
  return value_ * std::exp2(-age.count() / kHalfLifeSeconds);
}

Duration Patience::limited(double wanted) const {
  const auto floor = static_cast<double>(dead_after_.count());
  return Duration(static_cast<Duration::rep>(std::clamp(wanted, floor, kMost * floor)));
}

Duration Patience::with_absence(TimePoint now, double own_load) const {
  const double waiting = std::max(load_.value(now), own_load) - 1.0;
  return limited(static_cast<double>(dead_after_.count()) * waiting);
}

Duration Patience::with_silence(TimePoint now, double own_load) const {
  return std::max(with_absence(now, own_load), limited(kGapsAllowed * gap_.value(now)));
}

}  // namespace troupe::runtime
