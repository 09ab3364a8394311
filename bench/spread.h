#pragma once

// The middle and the ends of several measurements.

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::bench {

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
