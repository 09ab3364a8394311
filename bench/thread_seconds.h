#pragma once

// Processor time of this thread: a kernel never waits, and other work on the machine must not
// count.

#include <ctime>

namespace troupe::bench {

inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace troupe::bench
