#pragma once

// The state a run begins with: made from the seed, or read from the run's newest good checkpoint.

#include <optional>
#include <string>

#include "config/codec.h"
#include "config/topology.h"
#include "launch/folder/run_folder.h"
#include "model/gan.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// What a checkpoint must agree with to be resumed from.
struct RunIdentity {
  runtime::Hash128 topology_hash;
  std::string numerics_class;
  runtime::Hash128 data_fingerprint;
};

// Tries the folder's checkpoints from the newest on; a damaged one is named in the log with the
// reason and the next older one tried; once a good one is found those above it get the ending
// ".unreadable", so that they no longer count as checkpoints. A good one of another topology,
// numerics class or data is refused (kData) by name, as is a folder whose checkpoints are all
// damaged.
//
// A run that was killed before its first checkpoint begins again with its initial state, which the
// log says; one whose checkpoints are gone although its metrics tell of some is refused (kData).
runtime::Result<pipeline::TrainingState> read_newest_state(
    const RunFolder& folder, runtime::Disk& disk, const model::Gan& gan,
    const pipeline::TrainingOptions& options, const RunIdentity& identity, runtime::Log& log);

// With weak scaling the workers are part of what is trained: kTopology, at train.scaling, when the
// newest checkpoint that can be read was written with another number of them than `members` (0: one
// process). `asked` is the topology before it was scaled; of a strong one nothing is read.
runtime::Result<void> check_weak_scaling(const RunFolder& folder, runtime::Disk& disk,
                                         const config::Topology& asked, std::uint32_t members,
                                         const config::Origins& origins);

// The best checkpoint of the run up to `step`, as the run left it; none when it had no validation
// by then or the file is gone.
std::optional<pipeline::BestCheckpoint> read_best(const RunFolder& folder, runtime::Disk& disk,
                                                  std::uint64_t step, runtime::Log& log);

}  // namespace troupe::launch
