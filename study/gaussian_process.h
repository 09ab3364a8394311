#pragma once

// A Gaussian process over points of a space: what is to be expected at a place, and how surely,
// after some places were looked at. The kernel is Matern's with nu = 5/2 and a length for each
// dimension (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, eq. 4.17):
//
//   k(a, b) = signal (1 + r + r^2 / 3) exp(-r),  r^2 = 5 sum_d (distance_d(a, b) / length_d)^2
//
// Numbers have their difference as distance, words 1 where they differ. Values have mean 0.

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::study {

// A place: of each dimension a number, or the index of a word.
using Coordinates = std::vector<double>;

struct KernelOptions {
  std::vector<double> lengths;  // above 0, one for each dimension
  double signal = 1.0;          // variance of the function
  double noise = 1e-6;          // variance of a value around it, above 0

  bool operator==(const KernelOptions&) const = default;
};

struct Posterior {
  double mean = 0.0;
  double deviation = 0.0;  // standard deviation of the function, without noise
};

// Immutable once made; any thread. Costs the cube of the number of places once, and its square for
// each place it is asked about.
class GaussianProcess {
 public:
  // `is_word`: of each dimension. As many values as places.
  GaussianProcess(std::vector<bool> is_word, std::vector<Coordinates> places,
                  const std::vector<double>& values, KernelOptions options);
  ~GaussianProcess();
  GaussianProcess(GaussianProcess&&) noexcept;
  GaussianProcess& operator=(GaussianProcess&&) noexcept;

  Posterior at(const Coordinates& place) const;
  // Logarithm of the probability density of the values (eq. 2.30).
  double log_likelihood() const;
  const KernelOptions& options() const;

 private:
  struct Solved;
  std::unique_ptr<const Solved> solved_;
};

// The options under which the values are the most plausible: the maximum of the likelihood times
// what is thought of lengths and noise before (after Hvarfner et al., Vanilla Bayesian Optimization
// Performs Great in High Dimensions, ICML 2024), found from a few beginnings. For places within the
// unit cube and values of variance 1. The same arguments give the same options.
KernelOptions fit_kernel(const std::vector<bool>& is_word, const std::vector<Coordinates>& places,
                         const std::vector<double>& values);

}  // namespace troupe::study
