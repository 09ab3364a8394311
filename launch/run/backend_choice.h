#pragma once

// From the topology's words to the backend that computes.

#include <memory>

#include "config/topology.h"
#include "model/backend.h"

namespace troupe::launch {

// kFastest: the cpu backend (oneDNN), which has no bf16: such topologies are refused when they are
// read. kPortable: kernels that give the same bits on every host that can run them; an error
// (kUsage) on others.
runtime::Result<std::unique_ptr<model::Backend>> make_backend(const config::ModelSection& section);

}  // namespace troupe::launch
