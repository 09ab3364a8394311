#pragma once

// The options of the Monitor of a run that trains here.

#include <cstdint>

#include "actors/monitor.h"
#include "launch/folder/run_folder.h"
#include "launch/run/local_run.h"
#include "launch/run/training_setup.h"

namespace troupe::launch {

// All of it but `on_node` and `sample`. `first_step`: see MonitorOptions.
actors::MonitorOptions monitor_options(const LocalRunRequest& request, const RunFolder& folder,
                                       const TrainingSetup& setup, std::uint64_t first_step);

}  // namespace troupe::launch
