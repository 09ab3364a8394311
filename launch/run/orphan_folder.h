#pragma once

// What a member leaves that has lost its head for good: a run's folder with the state it has, from
// which `troupe run --resume` goes on.

#include <ctime>
#include <string>

#include "config/topology.h"
#include "launch/folder/run_folder.h"
#include "launch/run/training_setup.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// "runs/member.2-20250131-123456", in local time: below the current folder, as those of `troupe
// run` are.
std::string orphan_folder(const std::string& node, std::time_t now);

// Writes a checkpoint of the state into the folder of a run. kData: it cannot be written.
runtime::Result<void> write_state(const RunFolder& folder, const config::Topology& topology,
                                  const std::string& effective, const TrainingSetup& setup,
                                  const pipeline::TrainingState& state, runtime::Disk& disk);

// Makes the folder, with a checkpoint of the state and the topology that the head has told, whose
// text is `effective`. A folder that holds a run is refused (kUsage); kData: it cannot be written.
runtime::Result<void> write_orphan(const std::string& folder, const config::Topology& topology,
                                   const std::string& effective, const TrainingSetup& setup,
                                   const pipeline::TrainingState& state, runtime::Disk& disk);

}  // namespace troupe::launch
