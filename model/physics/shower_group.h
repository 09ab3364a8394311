#pragma once

// The sums over a set of showers and the figures they give: all events of a sample, or those of one
// energy bin.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/physics/histogram.h"
#include "model/physics/pearson_sum.h"
#include "model/physics/shower_observable.h"

namespace troupe::model {

struct Spread {
  double mean = 0.0;
  double deviation = 0.0;  // standard deviation, divided by n
};

// Numbers of one kind: their mean and standard deviation.
class SpreadSum {
 public:
  void add(double value, double times = 1.0);
  double count() const { return count_; }
  Spread spread() const;  // zeros for a count of 0

 private:
  double count_ = 0.0, mean_ = 0.0, squares_ = 0.0;  // squares of differences to the mean
};

// Features of the reduced correlations: moments 1 and 2 of x, y, z (x1 x2 y1 y2 z1 z2), ecal,
// primary energy, hits, R1, R2, R3.
inline constexpr std::size_t kCorrelationFeatures = 12;

// Means over no events are 0. One thread at a time.
class ShowerGroup {
 public:
  // ecal_histogram: an empty histogram of the wanted bins.
  ShowerGroup(const Extent& space, const Histogram& ecal_histogram);

  // `times`: how often the shower counts, as in a sample drawn from another. One that is not usable
  // is counted as invalid.
  void add(const SampledShower& shower, std::uint32_t times = 1);

  // Usable showers, the empty ones among them.
  std::int64_t events() const { return events_; }
  std::int64_t empty_events() const { return events_ - filled_; }
  std::int64_t invalid_events() const { return invalid_; }

  // Over all usable showers, empty ones counting as 0.
  Spread sampling_fraction() const { return spread(0); }  // ecal / primary energy
  Spread ecal_gev() const { return spread(1); }
  Spread hits() const { return spread(2); }
  // That of shower_observables()[observable], over the showers that have it.
  Spread spread(std::size_t observable) const { return observables_.at(observable).spread(); }
  // Fraction of cells above 10^(level - 13) GeV, 0 <= level < kSparsityLevels.
  Spread cells_above(std::size_t level) const;
  // Mean energy in GeV by index along axis 0 (x), 1 (y) or 2 (z).
  std::vector<double> mean_profile(std::size_t axis) const;
  // The same of the layers (z) of each shower from the fullest to the emptiest: what is the same
  // for showers whose layers came out of order.
  std::vector<double> mean_sorted_layers() const;
  const Histogram& ecal_histogram() const { return ecal_histogram_; }
  // Mean number of cells in each bin of the spectrum.
  std::vector<double> mean_spectrum() const;

  // Over the showers that are not empty.
  double mean_moment(std::size_t axis, std::size_t order) const;  // order 1 to kMomentOrders
  std::array<double, 3> mean_depth_fractions() const;
  // How many showers have their largest cell at each index along the axis.
  const std::vector<std::int64_t>& maximum_counts(std::size_t axis) const;
  // Pearson's r of each pair of features, (0,1) (0,2) ... (10,11); nothing where one of the two
  // does not vary.
  std::vector<std::optional<double>> correlations() const { return features_.correlations(); }
  // That of ecal and primary energy.
  std::optional<double> energy_correlation() const;
  // Likewise of the energies of layers, and of their energies / that of the primary.
  std::vector<std::optional<double>> layer_correlations() const { return layers_.correlations(); }
  std::vector<std::optional<double>> share_correlations() const { return shares_.correlations(); }

  // Over the showers that were given an angle error.
  std::optional<double> mean_angle_error() const;

 private:
  void add_filled(const SampledShower& shower, std::uint32_t times);
  void add_layers(const SampledShower& shower, std::uint32_t times);

  Extent space_;
  std::int64_t invalid_ = 0, events_ = 0, filled_ = 0;
  std::vector<SpreadSum> observables_;
  SpreadSum angle_error_;
  std::array<SpreadSum, kSparsityLevels> cells_above_;  // numbers of cells, not fractions
  std::array<std::vector<double>, 3> profile_;
  std::vector<double> sorted_layers_;
  std::array<std::int64_t, kSpectrumBins> spectrum_{};
  std::array<std::vector<std::int64_t>, 3> maximum_;
  std::array<std::array<double, kMomentOrders>, 3> moments_{};
  std::array<double, 3> depth_fractions_{};
  PearsonSum features_, layers_, shares_;
  std::vector<double> scratch_;
  Histogram ecal_histogram_;
};

}  // namespace troupe::model
