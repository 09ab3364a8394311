#pragma once

// The memory that a run takes, without opening any data, and whether this machine has it.

#include <cstdint>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "launch/machine/usable_machine.h"
#include "runtime/base/error.h"
#include "runtime/plan.h"

namespace troupe::launch {

// All nodes together, but for what one process or replica needs. Bytes.
struct RunBounds {
  // The part of the members that the run begins with, with the bounds of the run's whole plan,
  // which has slots for others besides.
  runtime::Plan plan;
  std::string ring;                // config::ring_text() of the members
  std::string sites;               // the members of each, where the strategy has any; ""
  std::int64_t message_bytes = 0;  // of all links' byte credits
  // Activations and scratch of one replica, and the sums of its steps under way.
  std::int64_t arena_bytes = 0;
  std::int64_t state_bytes = 0;  // weights, moving statistics and optimiser of one replica
  // Micro-batches of an iteration with their fakes and their contributions to the steps under way
  // (one or two, by the schedule), of all replicas together. Where workers train alone
  // (train.strategy), theirs of an outer step.
  std::int64_t iteration_bytes = 0;
  bool of_workers = false;       // iteration_bytes are
  std::int64_t cache_bytes = 0;  // of each process that computes, with data.cache: shard
  std::uint32_t replicas = 1;    // of each process that computes
  // The share of iteration_bytes that each of these processes has: of every member, or of the only
  // process.
  std::vector<std::int64_t> share_bytes;
};

// What RunBounds::iteration_bytes are for: "12.3 MB for the micro-batches of an iteration".
std::string iteration_text(const RunBounds& bounds);

// `members`: 0 for a run in one process. Errors (kTopology): networks that do not fit each other,
// links that cannot work, shares of another number of members, each at its place.
runtime::Result<RunBounds> run_bounds(const config::LoadedTopology& loaded, std::uint32_t members);

// kTopology when what processes of this machine compute with is more than there is, in one of them
// or in all together: such a run would be ended by the system. `processes_here` are the members
// that run here, by number, and 0 for a run in one process. A head is not counted.
runtime::Result<void> check_memory(const RunBounds& bounds,
                                   const std::vector<std::uint32_t>& processes_here,
                                   const UsableMemory& usable);

}  // namespace troupe::launch
