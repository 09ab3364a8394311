#pragma once

// A topology's networks, compiled for what computes them.

#include <memory>
#include <string>

#include "config/topology.h"
#include "model/backend.h"
#include "model/gan.h"
#include "runtime/base/error.h"

namespace troupe::launch {

struct Networks {
  std::unique_ptr<model::Backend> backend;
  std::unique_ptr<const model::Gan> gan;
};

// "device opencl:0 (NAME): groups of up to 4 micro-batches, portable float32 3"; empty on the
// processor.
std::string device_text(const model::Backend& backend);

// For a run of so many members (0: one process). A device computes as many micro-batches side by
// side as a replica has and as fit its memory; an error (kUsage) says what is needed and what there
// is when not even one fits.
runtime::Result<Networks> compile_networks(const config::Topology& topology, std::uint32_t members);

}  // namespace troupe::launch
