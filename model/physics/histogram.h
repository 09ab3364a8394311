#pragma once

// Counts in equal bins, and how far two such histograms are apart.

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

// `bins` equal bins over [0, high); one more at the end takes everything from `high` on. Values are
// finite and not negative. One thread at a time.
class Histogram {
 public:
  // bins >= 1, high > 0, CHECKed.
  Histogram(double high, std::int64_t bins);

  void add(double value, std::int64_t times = 1);

  double high() const { return high_; }
  // bins + 1 counts, the last being the overflow.
  const std::vector<std::int64_t>& counts() const { return counts_; }
  std::int64_t entries() const;

 private:
  double high_;
  std::vector<std::int64_t> counts_;
};

// S = 1/2 sum_i (a_i - b_i)^2 / (a_i + b_i) with a and b scaled to a sum of 1, over the bins that
// are not empty in both: 0 for the same shape, 1 for disjoint ones (CaloChallenge, evaluate.py).
// One empty: 1; both: 0. As many bins, CHECKed.
double separation_power(std::span<const double> a, std::span<const double> b);
// Likewise; same bins, CHECKed.
double separation_power(const Histogram& a, const Histogram& b);

}  // namespace troupe::model
