#pragma once

// Whether a topology's steps can be shared out as it says.

#include "config/codec.h"
#include "config/topology.h"

namespace troupe::config {

// A step is made in rounds where micro-batches share the statistics of a batch norm
// (model/shared_statistics.h).
void check_rounds(const Topology& topology, Reader& reader);

// Logical workers are part of a topology, and their sums do not depend on the members.
void check_strategy(const Topology& topology, Reader& reader);

}  // namespace troupe::config
