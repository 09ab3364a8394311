#pragma once

// Showers, measured one by one and kept as what is known of each, so that figures can be made of
// all of them and of samples that are drawn from them.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/physics/observables.h"
#include "model/physics/shower_observable.h"
#include "model/physics/shower_sketch.h"
#include "model/physics/shower_statistics.h"

namespace troupe::model {

// About 2 kB a shower, sketches included; figures take as much again. One thread at a time.
class ShowerSample {
 public:
  // sketches: true to keep what nearest neighbours are found by, and the first images.
  explicit ShowerSample(const StatisticsOptions& options, bool sketches = false);

  // gev: [x][y][z] in GeV, its size CHECKed; energy_gev of the primary. reference_angle_rad, used
  // only with options.angle: the angle of the data event with the same conditions, as measured on
  // it here (or as stored); |reference - measured| / reference enters the angle error, as 1 for an
  // empty shower. References outside (0.001, pi), such as the 100 of an empty data event, are
  // passed over. angle_rad: of the primary. Returns what was measured on this event, valid until
  // the next call.
  const ShowerObservables& add(std::span<const float> gev, double energy_gev,
                               std::optional<double> reference_angle_rad = std::nullopt,
                               std::optional<double> angle_rad = std::nullopt);

  const StatisticsOptions& options() const { return options_; }
  const std::vector<SampledShower>& showers() const { return showers_; }
  // Of each shower; empty without sketches.
  const std::vector<ShowerSketch>& sketches() const { return sketches_; }
  // The first kKeptImages showers, whole, in GeV; none without sketches.
  const std::vector<std::vector<float>>& images() const { return images_; }

  // Other bins for the sums to come.
  void set_bins(std::vector<EnergyBin> energies, std::vector<AngleBin> angles);
  // `energies` equal bins over the range of energies of its showers, and `angles` over that of
  // their angles; none where that is a point.
  void fit_bins(int energies, int angles);

  // The sums over all showers.
  ShowerStatistics statistics() const;
  // The same where shower i counts times[i] times; as many as showers, CHECKed.
  ShowerStatistics statistics(std::span<const std::uint32_t> times) const;

  static constexpr std::size_t kKeptImages = 64;

 private:
  StatisticsOptions options_;
  ShowerMeter meter_;
  bool keeps_sketches_;
  std::vector<SampledShower> showers_;
  std::vector<ShowerSketch> sketches_;
  std::vector<std::vector<float>> images_;
};

}  // namespace troupe::model
