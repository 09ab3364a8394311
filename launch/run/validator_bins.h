#pragma once

// Bins and the hit threshold of the topology's validator that do not fit its data.

#include <optional>

#include "config/codec.h"
#include "config/topology.h"
#include "pipeline/data/dataset.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// Warns of each bin that the topology gives and that no event has of those that the validator looks
// at: "run.yaml:12:20: actors.validator.energy_bins.1: no event of those for testing has 100 to 200
// GeV; they have 10 to 100". Likewise of a hit threshold below or above all cells of the first
// ones. The defaults fit many data, and are not looked at. Without `test` there is no validator.
// Errors: those of reading.
runtime::Result<void> warn_of_misfits(const config::Topology& topology,
                                      const config::Origins& origins,
                                      std::optional<pipeline::Dataset>& test, runtime::Log& log);

}  // namespace troupe::launch
