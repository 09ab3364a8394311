#pragma once

// How a topology has showers measured.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "config/topology.h"
#include "model/physics/shower_statistics.h"

namespace troupe::config {

// As the validator's section has it, for showers of these cells along x, y and z; `angle`: whether
// angles are measured.
model::StatisticsOptions statistics_of(const ValidatorSection& section, const model::Extent& space,
                                       bool angle);

// The columns that the generator makes, and the place of each among the data's.
std::vector<std::pair<std::string, std::size_t>> made_columns(const Topology& topology);

}  // namespace troupe::config
