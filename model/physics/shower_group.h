#pragma once

// The sums over a set of showers and the figures they give: all events of a sample, or those of one
// energy bin.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/physics/fixed_sum.h"
#include "model/physics/histogram.h"
#include "model/physics/observables.h"

namespace troupe::model {

struct Spread {
  double mean = 0.0;
  double deviation = 0.0;  // standard deviation, divided by n
};

// Numbers of one kind: their mean and standard deviation, independent of the order.
class SpreadSum {
 public:
  void add(double value);
  void merge(const SpreadSum& other);
  std::int64_t count() const { return count_; }
  Spread spread() const;  // zeros for a count of 0

 private:
  std::int64_t count_ = 0;
  FixedSum sum_, squares_;
};

// Features of the reduced correlations: moments 1 and 2 of x, y, z (x1 x2 y1 y2 z1 z2), ecal,
// primary energy, hits, R1, R2, R3.
inline constexpr std::size_t kCorrelationFeatures = 12;
inline constexpr std::size_t kCorrelationPairs =
    kCorrelationFeatures * (kCorrelationFeatures - 1) / 2;

// Every figure is exactly the same for any order of add() and any split into merged groups. Means
// over no events are 0. One thread at a time.
class ShowerGroup {
 public:
  // ecal_histogram: an empty histogram of the wanted bins.
  ShowerGroup(const Extent& space, const Histogram& ecal_histogram);

  // energy_gev: of the primary. angle_error: |reference - measured| / reference, where there is a
  // reference. A shower that is not valid or whose energy is outside [0.1, 1e6] GeV is counted as
  // invalid and otherwise left out.
  void add(const ShowerObservables& shower, double energy_gev, std::optional<double> angle_error);
  // Same space and histogram bins, CHECKed.
  void merge(const ShowerGroup& other);

  // Valid showers, the empty ones among them.
  std::int64_t events() const { return sampling_fraction_.count(); }
  std::int64_t empty_events() const { return events() - filled_; }
  std::int64_t invalid_events() const { return invalid_; }

  // Over all valid showers, empty ones counting as 0.
  Spread sampling_fraction() const { return sampling_fraction_.spread(); }  // ecal / primary energy
  Spread ecal_gev() const { return ecal_.spread(); }
  Spread hits() const { return hits_.spread(); }
  // Fraction of cells above 10^(level - 13) GeV, 0 <= level < kSparsityLevels.
  Spread cells_above(std::size_t level) const;
  // Mean energy in GeV by index along axis 0 (x), 1 (y) or 2 (z).
  std::vector<double> mean_profile(std::size_t axis) const;
  const Histogram& ecal_histogram() const { return ecal_histogram_; }

  // Over the showers that are not empty.
  double mean_moment(std::size_t axis, std::size_t order) const;  // order 1 to kMomentOrders
  std::array<double, 3> mean_depth_fractions() const;
  // How many showers have their largest cell at each index along the axis.
  const std::vector<std::int64_t>& maximum_counts(std::size_t axis) const;
  // Pearson's r of each pair of features, (0,1) (0,2) ... (10,11); nothing where one of the two
  // does not vary.
  std::array<std::optional<double>, kCorrelationPairs> correlations() const;
  // That of ecal and primary energy.
  std::optional<double> energy_correlation() const;

  // Over the showers that were given an angle error.
  std::optional<double> mean_angle_error() const;

 private:
  void add_filled(const ShowerObservables& shower, double energy_gev);

  Extent space_;
  std::int64_t invalid_ = 0, filled_ = 0;
  SpreadSum sampling_fraction_, ecal_, hits_, angle_error_;
  std::array<SpreadSum, kSparsityLevels> cells_above_;  // numbers of cells, not fractions
  std::array<std::vector<FixedSum>, 3> profile_;
  std::array<std::vector<std::int64_t>, 3> maximum_;
  std::array<std::array<FixedSum, kMomentOrders>, 3> moments_;
  std::array<FixedSum, 3> depth_fractions_;
  std::array<FixedSum, kCorrelationFeatures> features_, feature_squares_;
  std::array<FixedSum, kCorrelationPairs> feature_products_;
  Histogram ecal_histogram_;
};

}  // namespace troupe::model
