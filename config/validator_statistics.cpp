#include "config/validator_statistics.h"

namespace troupe::config {

model::StatisticsOptions statistics_of(const ValidatorSection& section, const model::Extent& space,
                                       bool angle) {
  model::StatisticsOptions options;
  options.space = space;
  options.hit_threshold_gev = section.hit_threshold_gev;
  options.energy_bins.clear();
  for (const auto& [low, high] : section.energy_bins) options.energy_bins.push_back({low, high});
  for (const auto& [low, high] : section.angle_bins) options.angle_bins.push_back({low, high});
  options.angle = angle;
  return options;
}

}  // namespace troupe::config
