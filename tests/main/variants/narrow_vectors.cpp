// The kernels of a host without AVX-512, on one that may have it.

#include <hwy/highway.h>

#include "launch/run/backend_choice.h"
#include "model/backend/cpu/plane_vectors.h"

namespace troupe::launch {

runtime::Result<std::unique_ptr<model::Backend>> make_backend(const config::Topology& topology,
                                                              std::int64_t) {
  const config::ModelSection& section = topology.model;
  CHECK(section.kernels == config::Kernels::kPortable, "the test's topology has portable kernels");
  hwy::DisableTargets(HWY_AVX2 - 1);  // all that are wider
  CHECK(model::cpu::vector_lanes() == 8, "vectors of AVX2");
  return model::make_portable_backend(section.precision);
}

}  // namespace troupe::launch
