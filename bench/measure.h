#pragma once

// The measures of benches: processor time, and the middle and the ends of several measurements.

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

namespace troupe::bench {

// Processor time of all threads of this process together since it began, in user and system mode.
inline double core_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Processor time of this thread: a kernel never waits, and other work on the machine must not
// count.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Spread {
  double median = 0, lowest = 0, highest = 0;
};

inline Spread spread_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

// Rates, from the times that the same amount of work took.
inline Spread rates_of(double work, std::vector<double> seconds) {
  const Spread times = spread_of(std::move(seconds));
  return {work / times.median, work / times.highest, work / times.lowest};
}

}  // namespace troupe::bench
