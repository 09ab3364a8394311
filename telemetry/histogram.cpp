#include "telemetry/histogram.h"

#include <cmath>
#include <cstddef>

namespace troupe::telemetry {

Histogram histogram_of(double low, double high, std::span<const double> counts) {
  if (!std::isfinite(low) || !std::isfinite(high) || high <= low || counts.empty()) return {};
  Histogram result;
  result.low = low;
  result.high = high;
  // Not low + i * (high - low): the difference of two doubles may be too large for one.
  for (std::size_t i = 0; i <= counts.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(counts.size());
    result.edges.push_back(low * (1.0 - part) + high * part);
  }
  result.edges.back() = high;
  result.counts.assign(counts.begin(), counts.end());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double middle = result.edges[i] * 0.5 + result.edges[i + 1] * 0.5;
    result.count += counts[i];
    result.sum += counts[i] * middle;
    result.sum_squares += counts[i] * middle * middle;
  }
  return result;
}

}  // namespace troupe::telemetry
