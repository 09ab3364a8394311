#include "runtime/base/clock.h"

namespace troupe::runtime {

TimePoint SteadyClock::now() const {
  return std::chrono::duration_cast<TimePoint>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace troupe::runtime
