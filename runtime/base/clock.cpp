#include "runtime/base/clock.h"

namespace troupe::runtime {

TimePoint steady_now() {
  return std::chrono::duration_cast<TimePoint>(std::chrono::steady_clock::now().time_since_epoch());
}

TimePoint SteadyClock::now() const { return steady_now(); }

WallTime wall_now() { return std::chrono::system_clock::now(); }

}  // namespace troupe::runtime
