#pragma once

// What people see of a run that trains here: what its Monitor is made from, and what is known of
// one that goes on.

#include <cstdint>

#include "actors/monitor.h"
#include "launch/folder/run_folder.h"
#include "launch/run/local_run.h"
#include "launch/run/training_setup.h"

namespace troupe::launch {

// All of it but `on_node` and `sample`. `first_step`: see MonitorOptions.
actors::MonitorOptions monitor_options(const LocalRunRequest& request, const RunFolder& folder,
                                       const TrainingSetup& setup, std::uint64_t first_step);

// What metrics.jsonl of a run that goes on says of it up to now, as far as its last kMostRecalled
// bytes go.
inline constexpr std::uint64_t kMostRecalled = std::uint64_t{64} << 20;
void recall_metrics(const RunFolder& folder, telemetry::History& history);

}  // namespace troupe::launch
