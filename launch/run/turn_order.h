#pragma once

// The order in which workers took their turns in a run (pipeline/steps/strategy.h): the one thing
// that another run of the topology needs to make the same bits.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/steps/training_state.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// The workers in the order of their turns from step 0 on.
using TurnOrder = std::shared_ptr<const std::vector<std::uint32_t>>;

// What the log of a run says of its turns.
struct TurnLog {
  TurnOrder order = nullptr;
  // Hash of the state before each step, from step 0 on, and of that behind the last one, if it was
  // saved. A run by this order has the same.
  std::vector<std::string> states = {};
};

// Reads it from the lines of steps in a run's metrics.jsonl. Of a step that is told twice, as by
// a run that was resumed, the later line counts. A last line that is cut off is left out. Errors:
// kUsage, the topology has no turns; kData, naming file and step: the file cannot be read, or is of
// no such run: a step is missing, or an iteration is not one turn of each worker, as many at a time
// as the topology says, or the first turn is not that of the first workers. The order ends with the
// turn that the last step names as next.
runtime::Result<TurnLog> read_turn_log(const std::string& path,
                                       const pipeline::TrainingOptions& options,
                                       runtime::Disk& disk);

// Checks that a run can go on from the state by this order, which is not null. kData: the state was
// trained in another order. An order that ends before the state's step says nothing about it.
runtime::Result<void> check_turn_order(const TurnOrder& order,
                                       const pipeline::TrainingState& state);

// Both, and tells the log how far the order leads, or that it ends before the state.
runtime::Result<TurnLog> take_turn_log(const std::string& path,
                                       const pipeline::TrainingOptions& options,
                                       const pipeline::TrainingState& state, runtime::Disk& disk,
                                       const runtime::Log& log);

}  // namespace troupe::launch
