#pragma once

// Processor time of this process.

#include <sys/resource.h>

namespace troupe::bench {

// Of all its threads together since it began, in user and system mode.
inline double core_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace troupe::bench
