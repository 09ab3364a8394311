#pragma once

// The state a run begins with: made from the seed, or read from the run's newest good checkpoint.

#include <string>

#include "launch/run_folder.h"
#include "model/gan.h"
#include "pipeline/training_state.h"
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
// reason and the next older one tried. A good one of another topology, numerics class or data is
// refused (kData) by name, as is a folder without a good one.
runtime::Result<pipeline::TrainingState> read_newest_state(
    const RunFolder& folder, runtime::Disk& disk, const model::Gan& gan,
    const pipeline::TrainingOptions& options, const RunIdentity& identity, runtime::Log& log);

}  // namespace troupe::launch
