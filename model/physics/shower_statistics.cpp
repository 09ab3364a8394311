#include "model/physics/shower_statistics.h"

#include "runtime/base/error.h"

namespace troupe::model {

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
      all_(options.space, Histogram(options.ecal_histogram_high_gev, options.ecal_histogram_bins)),
      bins_(options.energy_bins.size(), all_),
      angle_bins_(options.angle_bins.size(), all_) {}

void ShowerStatistics::add(const SampledShower& shower, std::uint32_t times) {
  all_.add(shower, times);
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    const EnergyBin& bin = options_.energy_bins[i];
    // Bins have both their ends, so an energy between two of them counts in both.
    if (shower.energy_gev >= bin.low_gev && shower.energy_gev <= bin.high_gev) {
      bins_[i].add(shower, times);
    }
  }
  for (std::size_t i = 0; i < angle_bins_.size() && shower.angle_rad; ++i) {
    const AngleBin& bin = options_.angle_bins[i];
    if (*shower.angle_rad >= bin.low_rad && *shower.angle_rad <= bin.high_rad) {
      angle_bins_[i].add(shower, times);
    }
  }
}

}  // namespace troupe::model
