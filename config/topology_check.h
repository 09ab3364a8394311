#pragma once

// Rules between fields of a topology, each reported at the place of what should change.

#include "config/codec.h"
#include "config/topology.h"

namespace troupe::config {

// All of them. A rule whose fields had problems of their own is left out, so that one mistake is
// reported once.
void check_topology(const YamlValue& file, const Topology& topology, Reader& reader);

// Sets what follows from the rest (topology.h says what). Only for a topology without problems.
void derive(Topology& topology);

}  // namespace troupe::config
