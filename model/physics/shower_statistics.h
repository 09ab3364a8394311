#pragma once

// Collects a sample of showers, one by one, for comparison with another sample.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/physics/observables.h"
#include "model/physics/shower_group.h"

namespace troupe::model {

// Primary energies from low to high, both included.
struct EnergyBin {
  double low_gev = 0.0;
  double high_gev = 0.0;
  bool operator==(const EnergyBin&) const = default;
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
  // True to measure the incidence angle.
  bool angle = false;
  // Histogram of ecal: equal bins over [0, high), and one for what is above.
  double ecal_histogram_high_gev = 15.0;
  std::int64_t ecal_histogram_bins = 60;

  bool operator==(const StatisticsOptions&) const = default;
};

// The same figures, bit for bit, for any order of add() and any split into merged parts: a sample
// may be measured on several threads, each with statistics of its own. One thread at a time.
class ShowerStatistics {
 public:
  explicit ShowerStatistics(const StatisticsOptions& options);

  // gev: [x][y][z] in GeV, its size CHECKed; energy_gev of the primary. reference_angle_rad, used
  // only with options.angle: the angle of the data event with the same conditions, as measured by
  // these statistics of the data (or as stored); |reference - measured| / reference enters the
  // angle error, as 1 for an empty shower. References outside (0.001, pi), such as the 100 of an
  // empty data event, are passed over. Returns what was measured on this event, valid until the
  // next call.
  const ShowerObservables& add(std::span<const float> gev, double energy_gev,
                               std::optional<double> reference_angle_rad = std::nullopt);
  // Same options, CHECKed.
  void merge(const ShowerStatistics& other);

  const StatisticsOptions& options() const { return options_; }
  const ShowerGroup& all() const { return all_; }
  // As many as options().energy_bins, in that order.
  const std::vector<ShowerGroup>& bins() const { return bins_; }

 private:
  StatisticsOptions options_;
  ShowerMeter meter_;
  ShowerGroup all_;
  std::vector<ShowerGroup> bins_;
};

}  // namespace troupe::model
