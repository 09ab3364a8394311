#pragma once

// How numbers are spread, in buckets.

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::telemetry {

struct Histogram {
  double low = 0.0, high = 0.0;  // of the numbers, or of the range that was counted
  double count = 0.0, sum = 0.0, sum_squares = 0.0;
  // Bucket i reaches from edge i to edge i + 1: one edge more than buckets, or none of both.
  std::vector<double> edges;
  std::vector<double> counts;
};

// Buckets of equal width between the least and the greatest number; those that are not finite are
// left out. Numbers that are all the same have one bucket of width 1 around them.
Histogram histogram_of(std::span<const double> values, std::size_t buckets = 30);

// What was counted by somebody else in buckets of equal width; the sums are those of the buckets'
// middles. Empty when the range is none (not finite, or high <= low).
Histogram histogram_of_counts(double low, double high, std::span<const double> counts);

}  // namespace troupe::telemetry
