#include "config/validator_statistics.h"

#include <algorithm>

#include "runtime/base/error.h"

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

std::vector<std::pair<std::string, std::size_t>> made_columns(const Topology& topology) {
  const auto& columns = topology.data.dataset.columns;
  std::vector<std::pair<std::string, std::size_t>> made;
  for (const std::string& name : topology.model.gan.discriminator.columns) {
    const auto found = std::ranges::find(columns, name, &pipeline::DataColumn::name);
    CHECK(found != columns.end(), "data have each column that a generator makes");
    made.emplace_back(name, static_cast<std::size_t>(found - columns.begin()));
  }
  return made;
}

}  // namespace troupe::config
