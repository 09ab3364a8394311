#pragma once

// The wiring of a training in one process, made from what the topology asks for.

#include <cstdint>
#include <vector>

#include "config/codec.h"
#include "config/plan_links.h"
#include "config/topology.h"
#include "runtime/base/error.h"
#include "runtime/plan.h"

namespace troupe::config {

struct LocalPlanOptions : TrainingSizes {
  std::uint32_t replicas = 1;
};

// coordinator owns loader, replica.0 .. replica.N-1, reducer, checkpointer, validator and monitor.
// The loader, the reducer and every replica have a link for their samples.
// Credits follow from the sizes (plan_links.h). Overrides set what they name on every link between
// actors of their kinds. The plan passes runtime::check.
//
// kTopology: every override that cannot be followed, as apply_link_overrides() has it.
runtime::Result<runtime::Plan> make_local_plan(const LocalPlanOptions& options,
                                               const std::vector<LinkOverride>& overrides,
                                               const Origins& origins);

}  // namespace troupe::config
