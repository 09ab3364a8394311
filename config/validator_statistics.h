#pragma once

// How the validator's section of a topology has showers measured.

#include "config/topology.h"
#include "model/physics/shower_statistics.h"

namespace troupe::config {

// For showers of these cells along x, y and z; `angle`: whether angles are measured.
model::StatisticsOptions statistics_of(const ValidatorSection& section, const model::Extent& space,
                                       bool angle);

}  // namespace troupe::config
