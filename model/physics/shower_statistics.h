#pragma once

// The sums over a sample of showers, for comparison with another sample.

#include <cstdint>
#include <vector>

#include "model/physics/shower_group.h"

namespace troupe::model {

// Primary energies from low to high, both included.
struct EnergyBin {
  double low_gev = 0.0;
  double high_gev = 0.0;
  bool operator==(const EnergyBin&) const = default;
};

// The same of primary angles.
struct AngleBin {
  double low_rad = 0.0;
  double high_rad = 0.0;
  bool operator==(const AngleBin&) const = default;
};

// `count` bins of equal width from low to high.
std::vector<EnergyBin> equal_energy_bins(double low_gev, double high_gev, std::int64_t count);

struct StatisticsOptions {
  // Cells along x, y, z.
  Extent space{};
  // A cell above it is a hit. 3DGAN's analysis: 3e-4 GeV.
  double hit_threshold_gev = 3e-4;
  // Over which the figure of merit averages. They may leave gaps and overlap; an event counts in
  // every bin it falls into, and among all events in any case. The default is wide enough that a
  // few hundred events over 10 to 500 GeV fill every bin; 3DGAN's figure of merit takes 5 GeV on
  // either side of 110, 150 and 190 GeV, its full analysis of 50, 100, 200, 250, 300, 400 and 500.
  std::vector<EnergyBin> energy_bins = equal_energy_bins(0.0, 500.0, 5);
  // In which profiles are compared apart, as in those of energy; showers of unknown angle are in
  // none of them. 3DGAN's analysis: 0.1 rad on either side of 62, 90 and 118 degrees.
  std::vector<AngleBin> angle_bins{};
  // True to measure the incidence angle.
  bool angle = false;
  // Histogram of ecal: equal bins over [0, high), and one for what is above.
  double ecal_histogram_high_gev = 15.0;
  std::int64_t ecal_histogram_bins = 60;

  bool operator==(const StatisticsOptions&) const = default;
};

// The sums over all events of a sample, and over those of each bin of energies and angles. One
// thread at a time.
class ShowerStatistics {
 public:
  explicit ShowerStatistics(const StatisticsOptions& options);

  // `times`: how often the shower counts.
  void add(const SampledShower& shower, std::uint32_t times = 1);

  const StatisticsOptions& options() const { return options_; }
  const ShowerGroup& all() const { return all_; }
  // As many as options().energy_bins, in that order.
  const std::vector<ShowerGroup>& bins() const { return bins_; }
  // As many as options().angle_bins, likewise.
  const std::vector<ShowerGroup>& angle_bins() const { return angle_bins_; }

 private:
  StatisticsOptions options_;
  ShowerGroup all_;
  std::vector<ShowerGroup> bins_, angle_bins_;
};

}  // namespace troupe::model
