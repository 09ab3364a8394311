#include "model/physics/shower_group.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

std::array<double, kCorrelationFeatures> features_of(const SampledShower& shower) {
  const auto& m = shower.found.moments;
  const auto& r = shower.found.depth_fractions;
  return {m[0][0],
          m[0][1],
          m[1][0],
          m[1][1],
          m[2][0],
          m[2][1],
          shower.found.ecal_gev,
          shower.energy_gev,
          static_cast<double>(shower.found.hits),
          r[0],
          r[1],
          r[2]};
}

double mean_of(double sum, std::int64_t count) {
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

template <class Sums>
std::vector<double> means_of(const Sums& sums, std::int64_t count) {
  std::vector<double> means;
  for (const auto sum : sums) means.push_back(mean_of(static_cast<double>(sum), count));
  return means;
}

}  // namespace

// Welford's update, so that a narrow distribution far from 0 keeps its width.
void SpreadSum::add(double value, double times) {
  if (times == 0.0) return;
  count_ += times;
  const double before = value - mean_;
  mean_ += before * times / count_;
  squares_ += times * before * (value - mean_);
}

Spread SpreadSum::spread() const {
  return {mean_, count_ == 0.0 ? 0.0 : std::sqrt(std::max(squares_ / count_, 0.0))};
}

ShowerGroup::ShowerGroup(const Extent& space, const Histogram& ecal_histogram)
    : space_(space),
      observables_(shower_observables().size()),
      sorted_layers_(static_cast<std::size_t>(space[2])),
      features_(kCorrelationFeatures),
      layers_(static_cast<std::size_t>(space[2])),
      shares_(static_cast<std::size_t>(space[2])),
      ecal_histogram_(ecal_histogram) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    profile_[axis].resize(static_cast<std::size_t>(space[axis]));
    maximum_[axis].resize(static_cast<std::size_t>(space[axis]));
  }
}

void ShowerGroup::add(const SampledShower& shower, std::uint32_t times) {
  if (times == 0) return;
  if (!shower.usable()) {
    invalid_ += times;
    return;
  }
  const ShowerObservables& found = shower.found;
  events_ += times;
  const auto observables = shower_observables();
  for (std::size_t i = 0; i < observables.size(); ++i) {
    if (observables[i].of_filled && found.empty()) continue;
    observables_[i].add(observables[i].of(shower), times);
  }
  ecal_histogram_.add(found.ecal_gev, times);
  if (shower.angle_error.has_value()) angle_error_.add(*shower.angle_error, times);
  for (std::size_t i = 0; i < cells_above_.size(); ++i) {
    cells_above_[i].add(static_cast<double>(found.cells_above[i]), times);
  }
  for (std::size_t i = 0; i < spectrum_.size(); ++i) {
    spectrum_[i] += std::int64_t{times} * found.spectrum[i];
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CHECK(found.profile[axis].size() == profile_[axis].size(), "a shower of another shape");
    for (std::size_t i = 0; i < profile_[axis].size(); ++i) {
      profile_[axis][i] += times * found.profile[axis][i];
    }
  }
  if (!found.empty()) add_filled(shower, times);
}

void ShowerGroup::add_filled(const SampledShower& shower, std::uint32_t times) {
  const ShowerObservables& found = shower.found;
  filled_ += times;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    maximum_[axis][static_cast<std::size_t>(found.maximum[axis])] += times;
    depth_fractions_[axis] += times * found.depth_fractions[axis];
    for (std::size_t k = 0; k < kMomentOrders; ++k) {
      moments_[axis][k] += times * found.moments[axis][k];
    }
  }
  features_.add(features_of(shower), times);
  add_layers(shower, times);
}

void ShowerGroup::add_layers(const SampledShower& shower, std::uint32_t times) {
  scratch_ = shower.found.profile[2];
  layers_.add(scratch_, times);
  for (double& layer : scratch_) layer /= shower.energy_gev;
  shares_.add(scratch_, times);
  std::sort(scratch_.begin(), scratch_.end(), std::greater<>());
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    sorted_layers_[i] += times * scratch_[i] * shower.energy_gev;
  }
}

Spread ShowerGroup::cells_above(std::size_t level) const {
  const Spread cells = cells_above_.at(level).spread();
  const auto all = static_cast<double>(space_[0] * space_[1] * space_[2]);
  return {cells.mean / all, cells.deviation / all};
}

std::vector<double> ShowerGroup::mean_profile(std::size_t axis) const {
  return means_of(profile_.at(axis), events());
}

std::vector<double> ShowerGroup::mean_sorted_layers() const {
  return means_of(sorted_layers_, events());
}

std::vector<double> ShowerGroup::mean_spectrum() const { return means_of(spectrum_, events()); }

double ShowerGroup::mean_moment(std::size_t axis, std::size_t order) const {
  CHECK(order >= 1, "moments are numbered from 1");
  return mean_of(moments_.at(axis).at(order - 1), filled_);
}

std::array<double, 3> ShowerGroup::mean_depth_fractions() const {
  std::array<double, 3> means{};
  for (std::size_t i = 0; i < means.size(); ++i) means[i] = mean_of(depth_fractions_[i], filled_);
  return means;
}

const std::vector<std::int64_t>& ShowerGroup::maximum_counts(std::size_t axis) const {
  return maximum_.at(axis);
}

std::optional<double> ShowerGroup::energy_correlation() const {
  constexpr std::size_t kEcal = 6, kPrimary = 7;
  constexpr std::size_t kPairsBefore = kEcal * (2 * kCorrelationFeatures - kEcal - 1) / 2;
  return correlations()[kPairsBefore + kPrimary - kEcal - 1];
}

std::optional<double> ShowerGroup::mean_angle_error() const {
  if (angle_error_.count() == 0.0) return std::nullopt;
  return angle_error_.spread().mean;
}

}  // namespace troupe::model
