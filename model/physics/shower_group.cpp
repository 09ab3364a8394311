#include "model/physics/shower_group.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

// Keeps every figure and its square within FixedSum's range.
constexpr double kSmallestEnergyGev = 0.1;
constexpr double kLargestEnergyGev = 1e6;
// A feature whose variance is below this part of its mean square is constant but for rounding.
constexpr double kConstantFeature = 1e-12;

std::array<double, kCorrelationFeatures> features_of(const ShowerObservables& shower,
                                                     double energy_gev) {
  const auto& m = shower.moments;
  const auto& r = shower.depth_fractions;
  return {m[0][0],
          m[0][1],
          m[1][0],
          m[1][1],
          m[2][0],
          m[2][1],
          shower.ecal_gev,
          energy_gev,
          static_cast<double>(shower.hits),
          r[0],
          r[1],
          r[2]};
}

}  // namespace

void SpreadSum::add(double value) {
  ++count_;
  sum_.add(value);
  squares_.add(value * value);
}

void SpreadSum::merge(const SpreadSum& other) {
  count_ += other.count_;
  sum_.merge(other.sum_);
  squares_.merge(other.squares_);
}

Spread SpreadSum::spread() const {
  const double mean = sum_.mean(count_);
  return {mean, std::sqrt(std::max(squares_.mean(count_) - mean * mean, 0.0))};
}

ShowerGroup::ShowerGroup(const Extent& space, const Histogram& ecal_histogram)
    : space_(space), ecal_histogram_(ecal_histogram) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    profile_[axis].resize(static_cast<std::size_t>(space[axis]));
    maximum_[axis].resize(static_cast<std::size_t>(space[axis]));
  }
}

void ShowerGroup::add(const ShowerObservables& shower, double energy_gev,
                      std::optional<double> angle_error) {
  if (!shower.valid || !(energy_gev >= kSmallestEnergyGev && energy_gev <= kLargestEnergyGev)) {
    ++invalid_;
    return;
  }
  sampling_fraction_.add(shower.ecal_gev / energy_gev);
  ecal_.add(shower.ecal_gev);
  ecal_histogram_.add(shower.ecal_gev);
  hits_.add(static_cast<double>(shower.hits));
  if (angle_error.has_value()) angle_error_.add(*angle_error);
  for (std::size_t i = 0; i < cells_above_.size(); ++i) {
    cells_above_[i].add(static_cast<double>(shower.cells_above[i]));
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CHECK(shower.profile[axis].size() == profile_[axis].size(), "a shower of another shape");
    for (std::size_t i = 0; i < profile_[axis].size(); ++i) {
      profile_[axis][i].add(shower.profile[axis][i]);
    }
  }
  if (!shower.empty()) add_filled(shower, energy_gev);
}

void ShowerGroup::add_filled(const ShowerObservables& shower, double energy_gev) {
  ++filled_;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    ++maximum_[axis][static_cast<std::size_t>(shower.maximum[axis])];
    depth_fractions_[axis].add(shower.depth_fractions[axis]);
    for (std::size_t k = 0; k < kMomentOrders; ++k) moments_[axis][k].add(shower.moments[axis][k]);
  }
  const auto features = features_of(shower, energy_gev);
  std::size_t pair = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    features_[i].add(features[i]);
    feature_squares_[i].add(features[i] * features[i]);
    for (std::size_t j = i + 1; j < features.size(); ++j) {
      feature_products_[pair++].add(features[i] * features[j]);
    }
  }
}

void ShowerGroup::merge(const ShowerGroup& other) {
  CHECK(space_ == other.space_, "groups of showers of different shapes do not merge");
  const auto merge_all = [](auto& into, const auto& from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i].merge(from[i]);
  };
  invalid_ += other.invalid_;
  filled_ += other.filled_;
  sampling_fraction_.merge(other.sampling_fraction_);
  ecal_.merge(other.ecal_);
  hits_.merge(other.hits_);
  angle_error_.merge(other.angle_error_);
  merge_all(cells_above_, other.cells_above_);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    merge_all(profile_[axis], other.profile_[axis]);
    merge_all(moments_[axis], other.moments_[axis]);
    for (std::size_t i = 0; i < maximum_[axis].size(); ++i) {
      maximum_[axis][i] += other.maximum_[axis][i];
    }
  }
  merge_all(depth_fractions_, other.depth_fractions_);
  merge_all(features_, other.features_);
  merge_all(feature_squares_, other.feature_squares_);
  merge_all(feature_products_, other.feature_products_);
  ecal_histogram_.merge(other.ecal_histogram_);
}

Spread ShowerGroup::cells_above(std::size_t level) const {
  const Spread cells = cells_above_.at(level).spread();
  const auto all = static_cast<double>(space_[0] * space_[1] * space_[2]);
  return {cells.mean / all, cells.deviation / all};
}

std::vector<double> ShowerGroup::mean_profile(std::size_t axis) const {
  std::vector<double> means;
  for (const FixedSum& sum : profile_.at(axis)) means.push_back(sum.mean(events()));
  return means;
}

double ShowerGroup::mean_moment(std::size_t axis, std::size_t order) const {
  CHECK(order >= 1, "moments are numbered from 1");
  return moments_.at(axis).at(order - 1).mean(filled_);
}

std::array<double, 3> ShowerGroup::mean_depth_fractions() const {
  std::array<double, 3> means{};
  for (std::size_t i = 0; i < means.size(); ++i) means[i] = depth_fractions_[i].mean(filled_);
  return means;
}

const std::vector<std::int64_t>& ShowerGroup::maximum_counts(std::size_t axis) const {
  return maximum_.at(axis);
}

std::array<std::optional<double>, kCorrelationPairs> ShowerGroup::correlations() const {
  std::array<std::optional<double>, kCorrelationPairs> found;
  std::array<double, kCorrelationFeatures> mean{}, variance{};
  std::array<bool, kCorrelationFeatures> varies{};
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] = features_[i].mean(filled_);
    const double square = feature_squares_[i].mean(filled_);
    variance[i] = square - mean[i] * mean[i];
    varies[i] = variance[i] > kConstantFeature * square;
  }
  std::size_t pair = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (std::size_t j = i + 1; j < mean.size(); ++j, ++pair) {
      if (!varies[i] || !varies[j]) continue;
      const double covariance = feature_products_[pair].mean(filled_) - mean[i] * mean[j];
      found[pair] = covariance / std::sqrt(variance[i] * variance[j]);
    }
  }
  return found;
}

std::optional<double> ShowerGroup::energy_correlation() const {
  constexpr std::size_t kEcal = 6, kPrimary = 7;
  constexpr std::size_t kPairsBefore = kEcal * (2 * kCorrelationFeatures - kEcal - 1) / 2;
  return correlations()[kPairsBefore + kPrimary - kEcal - 1];
}

std::optional<double> ShowerGroup::mean_angle_error() const {
  if (angle_error_.count() == 0) return std::nullopt;
  return angle_error_.spread().mean;
}

}  // namespace troupe::model
