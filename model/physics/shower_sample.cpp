#include "model/physics/shower_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

constexpr double kSmallestReferenceRad = 1e-3;

}  // namespace

ShowerSample::ShowerSample(const StatisticsOptions& options, bool sketches)
    : options_(options),
      meter_(options.space, options.hit_threshold_gev, options.angle),
      keeps_sketches_(sketches) {}

const ShowerObservables& ShowerSample::add(std::span<const float> gev, double energy_gev,
                                           std::optional<double> reference_angle_rad,
                                           std::optional<double> angle_rad) {
  const ShowerObservables& shower = meter_.measure(gev);
  std::optional<double> angle_error;
  const double reference = reference_angle_rad.value_or(0.0);
  if (options_.angle && reference > kSmallestReferenceRad && reference < std::numbers::pi) {
    // A shower without energy has no angle, and counts as wrong by all of the reference.
    angle_error = shower.empty() ? 1.0 : std::abs(reference - shower.angle_rad) / reference;
  }
  showers_.push_back({shower, energy_gev, angle_error, angle_rad});
  if (keeps_sketches_) {
    sketches_.push_back(shower.valid ? sketch_of(gev) : ShowerSketch{});
    if (images_.size() < kKeptImages) images_.emplace_back(gev.begin(), gev.end());
  }
  return shower;
}

void ShowerSample::set_bins(std::vector<EnergyBin> energies, std::vector<AngleBin> angles) {
  options_.energy_bins = std::move(energies);
  options_.angle_bins = std::move(angles);
}

void ShowerSample::fit_bins(int energies, int angles) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = kInfinity, high = -kInfinity, low_angle = kInfinity, high_angle = -kInfinity;
  for (const SampledShower& shower : showers_) {
    if (!shower.usable()) continue;
    low = std::min(low, shower.energy_gev);
    high = std::max(high, shower.energy_gev);
    if (!shower.angle_rad) continue;
    low_angle = std::min(low_angle, *shower.angle_rad);
    high_angle = std::max(high_angle, *shower.angle_rad);
  }
  std::vector<EnergyBin> of_energies;
  std::vector<AngleBin> of_angles;
  if (low < high) {
    of_energies = equal_energy_bins(low, high, energies);
  } else if (low == high) {
    of_energies = {{low, high}};
  }
  if (low_angle < high_angle) {
    for (const EnergyBin& bin : equal_energy_bins(low_angle, high_angle, angles)) {
      of_angles.push_back({bin.low_gev, bin.high_gev});
    }
  }
  set_bins(std::move(of_energies), std::move(of_angles));
}

ShowerStatistics ShowerSample::statistics() const {
  ShowerStatistics sums(options_);
  for (const SampledShower& shower : showers_) sums.add(shower);
  return sums;
}

ShowerStatistics ShowerSample::statistics(std::span<const std::uint32_t> times) const {
  CHECK(times.size() == showers_.size(), "every shower needs the number of times it counts");
  ShowerStatistics sums(options_);
  for (std::size_t i = 0; i < times.size(); ++i) sums.add(showers_[i], times[i]);
  return sums;
}

}  // namespace troupe::model
