#pragma once

// What people see of a run that trains here: what its Monitor is made from.

#include <cstdint>

#include "actors/monitor.h"
#include "launch/local_run.h"
#include "launch/run_folder.h"
#include "launch/training_setup.h"

namespace troupe::launch {

// All of it but `on_node` and `sample`. `first_step`: see MonitorOptions.
actors::MonitorOptions monitor_options(const LocalRunRequest& request, const RunFolder& folder,
                                       const TrainingSetup& setup, std::uint64_t first_step);

}  // namespace troupe::launch
