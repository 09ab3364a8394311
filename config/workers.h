#pragma once

// How many members a run has, and what share of an iteration each takes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/codec.h"
#include "config/topology.h"
#include "runtime/base/error.h"

namespace troupe::config {

// Members that a run begins with: `override` (--workers) if it is given, else the workers of all
// hosts, or the first of a pool; 0 means that everything is in one process.
std::uint32_t workers_of(const Topology& topology, std::optional<std::uint32_t> override);

// Refuses a run of so many workers (0: one process) that this topology, whose scaling is as it was
// asked for, cannot have: more workers than any run has; more micro-batches than an iteration may
// have, or more events than are generated, with weak scaling; shares of another number of workers;
// fewer than cluster.failure.min_members. kTopology: all of it, each at its place. `origins` are
// the topology's.
runtime::Result<void> check_workers(const Topology& topology, std::uint32_t workers,
                                    const Origins& origins);

// Why the showers that are to be generated do not do for one iteration of so many workers; empty:
// they do, or none are generated.
std::string event_shortage(const Topology& topology, std::uint32_t workers);
// The paths of what that follows from.
const std::vector<std::string>& event_shortage_fields();

// The topology with the micro-batches of an iteration that so many members make (0: one process, as
// one member), whatever its scaling was: of the result it is strong.
Topology scaled(const Topology& topology, std::uint32_t members);

// What the sums, Views and records of such a topology's runs go by (pipeline/steps/strategy.h).
pipeline::TrainingOptions options_between_members(const Topology& topology);

}  // namespace troupe::config
