#pragma once

// The wiring of a training in one process, made from what the topology asks for.

#include <cstdint>
#include <vector>

#include "config/codec.h"
#include "config/topology.h"
#include "runtime/base/error.h"
#include "runtime/plan.h"

namespace troupe::config {

struct LocalPlanOptions {
  std::uint32_t replicas = 1;
  std::uint32_t micro_batches = 1;         // M, of an iteration
  std::uint32_t loader_credits = 8;        // micro-batches loaded ahead of need, per replica
  std::int64_t batch_bytes = 0;            // payload of one micro-batch
  std::int64_t contribution_elements = 0;  // of the largest step of the schedule
  std::int64_t segment_bytes = 1 << 20;    // largest bucket
  bool validator = true;
};

// coordinator owns loader, replica.0 .. replica.N-1, reducer, checkpointer, validator and monitor.
// Credits follow from the sizes: a replica holds its micro-batches for a whole iteration, so its
// batch link has room for those and loader_credits more; contributions have room for one step and
// its repetition. The cycle replica -> reducer -> replica holds a token: a replica begins with a
// state, as if a step had been reduced before. Overrides set what they name on every link between
// actors of their kinds. The plan passes runtime::check.
//
// kTopology: every override that names no link of the plan, or leaves a link too little for
// anything to move, each at its place in the file. `origins` are those of the topology.
runtime::Result<runtime::Plan> make_local_plan(const LocalPlanOptions& options,
                                               const std::vector<LinkOverride>& overrides,
                                               const Origins& origins);

}  // namespace troupe::config
