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

// Members of a run: `override` (--workers) if it is given, else the workers of all hosts; 0 means
// that everything is in one process.
std::uint32_t workers_of(const Topology& topology, std::optional<std::uint32_t> override);

// Of an iteration of any run, whatever makes them so many.
inline constexpr std::uint32_t kMostMicroBatches = 1 << 16;

// What a run of so many workers (0: one process) cannot do with this topology, whose scaling is as
// it was asked for: more workers than any run has; more micro-batches than an iteration may have,
// or more events than are generated, with weak scaling; shares of another number of workers; fewer
// than cluster.failure.min_members. kTopology: all of it, each at its place. `origins` are the
// topology's.
runtime::Result<void> check_workers(const Topology& topology, std::uint32_t workers,
                                    const Origins& origins);

// Why the showers that are to be generated do not do for one iteration of so many workers; empty:
// they do, or none are generated.
std::string event_shortage(const Topology& topology, std::uint32_t workers);
// The paths of what that follows from.
const std::vector<std::string>& event_shortage_fields();

// cluster.assign for `workers` members: the weight of each, or nothing when all are equal, as
// ClusterPlanOptions::shares takes them. kTopology, at its place in the file: the shares are of
// another number of members. `origins` are the topology's.
runtime::Result<std::vector<std::uint64_t>> member_shares(const Topology& topology,
                                                          std::uint32_t workers,
                                                          const Origins& origins);

// The topology with the micro-batches of an iteration that so many members make (0: one process, as
// one member), whatever its scaling was: of the result it is strong.
Topology scaled(const Topology& topology, std::uint32_t members);

}  // namespace troupe::config
