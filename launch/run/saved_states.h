#pragma once

// Training states of a run on its disk: the one it begins with, and those that it saves when no
// Checkpointer can.

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "actors/messages.h"
#include "config/topology_file.h"
#include "launch/folder/run_folder.h"
#include "launch/run/training_setup.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// A run begins here. A new one has nothing but the state.
struct StartingPoint {
  actors::StatePointer state;
  std::optional<std::uint64_t> saved_step, validated_step;
  std::optional<std::uint64_t> told_step;  // the newest of metrics.jsonl, when a head returns
  std::optional<pipeline::BestCheckpoint> best;
};

// The initial state, by the seed.
StartingPoint first_point(const TrainingSetup& setup);

// The state of the folder's newest good checkpoint. A damaged one is named in the log with the
// reason and the next older one tried; once a good one is found those above it get the ending
// ".unreadable", so that they no longer count as checkpoints. A good one of another topology,
// numerics class or data is refused (kData) by name, as is a folder whose checkpoints are all
// damaged.
//
// A run that was killed before its first checkpoint begins again with its initial state, which the
// log says; one whose checkpoints are gone although its metrics tell of some is refused (kData).
//
// metrics.jsonl is cut where the state stands, unless `returns`: then another head has trained on,
// and only a torn last line goes.
runtime::Result<StartingPoint> newest_point(const TrainingSetup& setup, const RunFolder& folder,
                                            bool returns, runtime::Disk& disk, runtime::Log& log);

// With weak scaling the workers are part of what is trained: kTopology, at train.scaling, when the
// newest checkpoint that can be read was written with another number of them than `members` (0: one
// process). `asked` is the topology before it was scaled; of a strong one nothing is read.
runtime::Result<void> check_weak_scaling(const RunFolder& folder, runtime::Disk& disk,
                                         const config::LoadedTopology& asked,
                                         std::uint32_t members);

// Writes a checkpoint of the state into the folder of a run. kData: it cannot be written.
runtime::Result<void> write_state(const TrainingSetup& setup, const pipeline::TrainingState& state,
                                  const RunFolder& folder, runtime::Disk& disk);

// "runs/member.2-20250131-123456", now in local time: below the current folder, as those of `troupe
// run` are.
std::string orphan_folder(const std::string& name);

// Makes a run's folder with a checkpoint of the state and the topology, from which `troupe run
// --resume` goes on. A folder that holds a run is refused (kUsage); kData: it cannot be written.
runtime::Result<void> write_orphan(const TrainingSetup& setup, const pipeline::TrainingState& state,
                                   const std::string& folder, runtime::Disk& disk);

}  // namespace troupe::launch
