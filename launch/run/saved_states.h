#pragma once

// Training states of a run on its disk: the one it begins with, and those that it saves when no
// Checkpointer can.

#include <cstdint>
#include <optional>
#include <string>

#include "actors/messages.h"
#include "config/topology_file.h"
#include "launch/folder/run_disk.h"
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

// The initial state: weights by the seed, or those of train.from, whose origin the setup then has.
// kData: that file cannot be read, or is of another model.
runtime::Result<StartingPoint> first_point(TrainingSetup& setup, runtime::Disk& disk,
                                           runtime::Log& log);

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
// The setup has the checkpoint's origin afterwards.
runtime::Result<StartingPoint> newest_point(TrainingSetup& setup, const RunFolder& folder,
                                            bool returns, runtime::Disk& disk, runtime::Log& log);

// With weak scaling the workers are part of what is trained: kTopology, at train.scaling, when the
// newest checkpoint that can be read was written with another number of them than `members` (0: one
// process). `asked` is the topology before it was scaled; of a strong one nothing is read.
runtime::Result<void> check_weak_scaling(const RunFolder& folder, runtime::Disk& disk,
                                         const config::LoadedTopology& asked,
                                         std::uint32_t members);

// Makes sure that the last state, which was saved in the run's folder, is there, for somebody may
// have removed it since. kData: it cannot be written again.
runtime::Result<void> keep_last_state(const TrainingSetup& setup,
                                      const pipeline::TrainingState& state, const RunFolder& folder,
                                      RunDisk& disk);

// Saves the last state, which the run's own folder did not take, in a folder of its own: below the
// current one, or else among temporary files. Says in the log what became of it, and returns the
// folder from which to go on. Null: nobody has the state. A disk that `hangs` is not asked again.
std::string save_elsewhere(const TrainingSetup& setup, const actors::StatePointer& state,
                           const RunFolder& folder, bool hangs, runtime::Disk& disk,
                           runtime::Log& log);

// Saves the state of a member that has lost its head for good, in a folder of its own. Returns, for
// people, what became of it.
std::string save_orphan(const std::string& node, const TrainingSetup& setup,
                        const pipeline::TrainingState& state, runtime::Disk& disk);

}  // namespace troupe::launch
