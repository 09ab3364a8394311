#pragma once

// The process that is the head of a run, or trains alone, makes it from these: data, state and the
// options of its actors.

#include <cstdint>
#include <optional>

#include "actors/spawn.h"
#include "config/topology.h"
#include "launch/folder/membership_file.h"
#include "launch/folder/run_folder.h"
#include "launch/run/local_run.h"
#include "launch/run/training_setup.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// A run begins with these, prepared before any actor exists.
struct Prepared {
  TrainingSetup setup;
  actors::StatePointer state;
  // A run that goes on brings what is known of it up to its state; a new one has none of these.
  std::optional<std::uint64_t> saved_step, validated_step;
  std::optional<std::uint64_t> told_step;  // the newest of metrics.jsonl, when a head returns
  std::optional<pipeline::BestCheckpoint> best;
};

// Opens the data, and makes or reads the state. Errors: kData for either, kTopology for a model
// that cannot be made.
runtime::Result<Prepared> prepare(const LocalRunRequest& request, const RunFolder& folder,
                                  runtime::Disk& disk, runtime::Log& log);

// `prepared` and `disk` outlive the actors.
actors::NodeParts make_parts(const LocalRunRequest& request, const RunFolder& folder,
                             runtime::Disk& disk, Prepared& prepared);

// Tells the coordinator and the monitor what they need to know of the heads before this one.
void take_place(const HeadHistory& history, const config::FailureSection& failure,
                actors::NodeParts& parts);

}  // namespace troupe::launch
