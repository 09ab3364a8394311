#pragma once

// Pearson's correlation of every pair of some numbers, event by event.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe::model {

// One thread at a time.
class PearsonSum {
 public:
  explicit PearsonSum(std::size_t features);

  // As many values as features, CHECKed; an event that counts `times` times.
  void add(std::span<const double> values, double times = 1.0);

  // r of (0,1) (0,2) ... (n-2,n-1); nothing where one of the two does not vary.
  std::vector<std::optional<double>> correlations() const;

 private:
  double events_ = 0.0;
  std::vector<double> origin_;  // the first event: sums of differences to it lose no digits
  std::vector<double> sums_, squares_, products_;
  std::vector<double> centred_;
};

// Root mean square of r_a - r_b over the pairs that both have; nothing where there are none.
std::optional<double> rms_difference(std::span<const std::optional<double>> a,
                                     std::span<const std::optional<double>> b);
// Mean |r_a - r_b|, likewise.
std::optional<double> mean_difference(std::span<const std::optional<double>> a,
                                      std::span<const std::optional<double>> b);

}  // namespace troupe::model
