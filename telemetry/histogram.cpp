#include "telemetry/histogram.h"

#include <algorithm>
#include <cmath>

namespace troupe::telemetry {
namespace {

std::vector<double> even_edges(double low, double high, std::size_t buckets) {
  std::vector<double> edges(buckets + 1);
  // Not low + i * (high - low): the difference of two doubles may be too large for one.
  for (std::size_t i = 0; i <= buckets; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(buckets);
    edges[i] = low * (1.0 - part) + high * part;
  }
  edges.back() = high;
  return edges;
}

}  // namespace

Histogram histogram_of(std::span<const double> values, std::size_t buckets) {
  std::vector<double> sorted;
  std::copy_if(values.begin(), values.end(), std::back_inserter(sorted),
               [](double value) { return std::isfinite(value); });
  if (sorted.empty() || buckets == 0) return {};
  std::sort(sorted.begin(), sorted.end());
  Histogram result;
  result.low = sorted.front();
  result.high = sorted.back();
  result.count = static_cast<double>(sorted.size());
  for (const double value : sorted) {
    result.sum += value;
    result.sum_squares += value * value;
  }
  if (result.low == result.high) {
    result.edges = {result.low - 0.5, result.high + 0.5};
    result.counts = {result.count};
    return result;
  }
  result.edges = even_edges(result.low, result.high, buckets);
  auto from = sorted.begin();
  for (std::size_t i = 0; i < buckets; ++i) {
    // The last bucket has its upper edge too.
    const auto to =
        i + 1 == buckets ? sorted.end() : std::lower_bound(from, sorted.end(), result.edges[i + 1]);
    result.counts.push_back(static_cast<double>(to - from));
    from = to;
  }
  return result;
}

Histogram histogram_of_counts(double low, double high, std::span<const double> counts) {
  if (!std::isfinite(low) || !std::isfinite(high) || high <= low || counts.empty()) return {};
  Histogram result;
  result.low = low;
  result.high = high;
  result.edges = even_edges(low, high, counts.size());
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
