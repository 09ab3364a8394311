#pragma once

// Distances of two samples of vectors: Frechet's and the kernel's, as jetnet computes them for
// CaloChallenge. The only part of the physics that needs linear algebra.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/physics/paired_values.h"

namespace troupe::model {

// Vectors of one size, one after another.
struct FeatureTable {
  std::size_t size = 0;  // of a vector
  std::vector<double> values;

  std::size_t count() const { return size == 0 ? 0 : values.size() / size; }
};

// Divides both by the largest absolute value of each feature in `data`, as jetnet does; features
// that are 0 throughout the data stay.
void scale_by_data(FeatureTable& data, FeatureTable& generated);

// |m_a - m_b|^2 + Tr(C_a + C_b - 2 (C_a C_b)^(1/2)) with means m and covariances C (divided by n-1)
// of the two. At least two vectors each by weight, or the result is 0.
double frechet_distance(const FeatureTable& a, Times times_a, const FeatureTable& b, Times times_b);

// The same for samples without end: the intercept of a straight line through the distances of
// `repeats` random subsets (without replacement) of each of ten sizes equally spaced in 1/n, from a
// quarter of the smaller sample to all of it (jetnet's fpd draws with replacement from 10,000 to
// 50,000, where the samples have more).
double frechet_intercept(const FeatureTable& a, const FeatureTable& b, std::uint64_t seed,
                         int repeats = 20);

// Squared maximum mean discrepancy with the kernel (x.y / d + 1)^4, without bias: vectors are not
// compared with themselves. Keeps the kernel of all pairs: 8 x (n_a + n_b)^2 bytes.
class KernelDistance {
 public:
  KernelDistance(const FeatureTable& a, const FeatureTable& b);
  // same: the two tables are one, and a vector is not compared with itself across the two either.
  double distance(Times times_a, Times times_b, bool same = false) const;

 private:
  std::size_t count_a_, count_b_;
  std::vector<double> aa_, bb_, ab_;  // kernels, by rows
};

// For each of `from`, the squared distance to the nearest of `to`; with `same` the tables are one,
// and a vector is not its own neighbour. Infinite where there is none.
std::vector<double> nearest_squares(std::span<const float> from, std::span<const float> to,
                                    std::size_t size, bool same);

}  // namespace troupe::model
