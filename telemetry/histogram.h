#pragma once

// How numbers are spread, in buckets.

#include <span>
#include <vector>

namespace troupe::telemetry {

struct Histogram {
  double low = 0.0, high = 0.0;  // the range that was counted
  double count = 0.0, sum = 0.0, sum_squares = 0.0;
  // Bucket i reaches from edge i to edge i + 1: one edge more than buckets, or none of both.
  std::vector<double> edges;
  std::vector<double> counts;
};

// What was counted in buckets of equal width. The sums are those of the buckets' middles. Empty
// when there is no such range (not finite, or high <= low).
Histogram histogram_of(double low, double high, std::span<const double> counts);

}  // namespace troupe::telemetry
