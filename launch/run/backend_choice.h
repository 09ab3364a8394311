#pragma once

// From the topology's words to the backend that computes.

#include <memory>

#include "config/topology.h"
#include "model/backend.h"

namespace troupe::launch {

// kPortable: kernels that give the same bits on every host and device that can run them; an error
// (kUsage) on others. kFastest: on a processor the cpu backend (oneDNN), which has no bf16, for
// which portable kernels are the fastest; on a device tensor cores, or portable kernels in fp32
// where it has none. A device computes groups of up to `group` micro-batches.
runtime::Result<std::unique_ptr<model::Backend>> make_backend(const config::Topology& topology,
                                                              std::int64_t group = 1);

}  // namespace troupe::launch
