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

// cluster.assign for `workers` members: the weight of each, or nothing when all are equal, as
// ClusterPlanOptions::shares takes them. kTopology, at its place in the file: the shares are of
// another number of members, which only --workers can bring about. `origins` are the topology's.
runtime::Result<std::vector<std::uint64_t>> member_shares(const Topology& topology,
                                                          std::uint32_t workers,
                                                          const Origins& origins);

// kTopology, at its place in the file: the run has fewer members than cluster.failure.min_members
// when it begins, and would never go on.
runtime::Result<void> enough_members(const Topology& topology, std::uint32_t workers,
                                     const Origins& origins);

// The topology with the micro-batches of an iteration that so many members make (0: one process, as
// one member), whatever its scaling was: of the result it is strong.
Topology scaled(const Topology& topology, std::uint32_t members);

// What is wrong with as many shares for as many members, without its place.
std::string shares_mismatch(std::size_t shares, std::uint64_t members);

}  // namespace troupe::config
