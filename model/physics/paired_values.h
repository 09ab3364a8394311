#pragma once

// How far the distributions of one number in two samples are apart. Values are sorted once; each
// distance is then found for any weights, as samples that are drawn from the two have them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

// How often each value of a sample counts.
using Times = std::span<const std::uint32_t>;
// Whether each value of a sample has gone over to the other one.
using Turned = std::span<const std::uint8_t>;

// One thread at a time; the distances are pure.
class PairedValues {
 public:
  // Finite values, CHECKed. The bins of the two last distances: `bins` equal ones from low to high,
  // values outside counting in the first or the last.
  PairedValues(std::span<const double> data, std::span<const double> generated, double low,
               double high, std::size_t bins);

  // The largest difference of the two cumulative distributions (Kolmogorov and Smirnov), 0 to 1.
  double kolmogorov(Times data, Times generated) const;
  // The integral of that difference (Wasserstein-1), in standard deviations of the data; of their
  // unit where they do not vary.
  double wasserstein(Times data, Times generated) const;
  // S = 1/2 sum_i (a_i - b_i)^2 / (a_i + b_i) of the histograms scaled to a sum of 1:
  // CaloChallenge, evaluate.py. 0 for the same shape, 1 for disjoint ones.
  double separation(Times data, Times generated) const;
  // The same where `turned` values (not 0) have gone over to the other sample.
  double separation_of_turned(Turned data, Turned generated) const;
  // sum_i (sqrt(B/A) a_i - sqrt(A/B) b_i)^2 / (a_i + b_i) over the bins that are not empty in both,
  // A and B the sums, divided by their number less one (Gagunashvili 2010; ROOT's Chi2Test). About
  // 1 for samples of the same distribution. 0 where fewer than two bins have values.
  double chi_square(Times data, Times generated) const;

 private:
  struct Value {
    double value;
    std::uint32_t index;
    bool generated;
  };
  struct Counts {
    std::vector<double> data, generated;
    double all_data = 0.0, all_generated = 0.0;
  };
  Counts counts(Times data, Times generated) const;
  // Calls each(difference of the cumulative distributions, width of the step).
  template <class Each>
  void walk(Times data, Times generated, Each each) const;

  std::size_t data_size_, generated_size_;
  std::vector<Value> sorted_;
  std::vector<std::uint32_t> data_bins_, generated_bins_;
  std::vector<double> data_;
  std::size_t bins_;
};

// The distances, with what is told of each.
struct DistanceRule {
  const char* name;
  const char* title;
  const char* source;
  double (PairedValues::*of)(Times data, Times generated) const;
};
std::span<const DistanceRule> distance_rules();

}  // namespace troupe::model
