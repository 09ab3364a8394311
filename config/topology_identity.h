#pragma once

// Which topologies train the same state.

#include <string>
#include <vector>

#include "config/topology.h"
#include "runtime/base/hash.h"

namespace troupe::config {

// Hash of everything the trained bits depend on: model, data (what it is, not where), schedule,
// optimisers, rates, seed, M, b, reduction, kernels, precision. Not of workers, devices,
// epochs, iterations, names and everything that only bounds or watches the run.
runtime::Hash128 topology_hash(const Topology& topology);

// Why `now` cannot go on from a run of `started`, one line per field, "field: was A, is now B";
// empty when it can. --resume may change workers (actors.replica.count and threads,
// actors.loader.threads, cluster), devices, epochs, iterations and where data lies; nothing else.
std::vector<std::string> resume_problems(const Topology& started, const Topology& now);

}  // namespace troupe::config
