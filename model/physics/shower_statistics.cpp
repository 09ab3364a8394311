#include "model/physics/shower_statistics.h"

#include <cmath>
#include <numbers>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

constexpr double kSmallestReferenceRad = 1e-3;

}  // namespace

std::vector<EnergyBin> equal_energy_bins(double low_gev, double high_gev, std::int64_t count) {
  CHECK(count >= 1 && low_gev < high_gev, "energy bins need a range and a number");
  std::vector<EnergyBin> bins;
  const double width = (high_gev - low_gev) / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const double low = low_gev + width * static_cast<double>(i);
    const double high = low_gev + width * static_cast<double>(i + 1);
    bins.push_back({low, i + 1 == count ? high_gev : high});
  }
  return bins;
}

ShowerStatistics::ShowerStatistics(const StatisticsOptions& options)
    : options_(options),
      meter_(options.space, options.hit_threshold_gev, options.angle),
      all_(options.space, Histogram(options.ecal_histogram_high_gev, options.ecal_histogram_bins)),
      bins_(options.energy_bins.size(), all_) {}

const ShowerObservables& ShowerStatistics::add(std::span<const float> gev, double energy_gev,
                                               std::optional<double> reference_angle_rad) {
  const ShowerObservables& shower = meter_.measure(gev);
  std::optional<double> angle_error;
  const double reference = reference_angle_rad.value_or(0.0);
  if (options_.angle && reference > kSmallestReferenceRad && reference < std::numbers::pi) {
    // A shower without energy has no angle, and counts as wrong by all of the reference.
    angle_error = shower.empty() ? 1.0 : std::abs(reference - shower.angle_rad) / reference;
  }
  all_.add(shower, energy_gev, angle_error);
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    const EnergyBin& bin = options_.energy_bins[i];
    // Bins have both their ends, so an energy between two of them counts in both.
    if (energy_gev >= bin.low_gev && energy_gev <= bin.high_gev) {
      bins_[i].add(shower, energy_gev, angle_error);
    }
  }
  return shower;
}

void ShowerStatistics::merge(const ShowerStatistics& other) {
  CHECK(options_ == other.options_, "statistics with different options do not merge");
  all_.merge(other.all_);
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i].merge(other.bins_[i]);
}

}  // namespace troupe::model
