#include "launch/run/backend_choice.h"

namespace troupe::launch {

runtime::Result<std::unique_ptr<model::Backend>> make_backend(const config::ModelSection& section) {
  if (section.kernels == config::Kernels::kFastest) return model::make_cpu_backend();
  return model::make_portable_backend(section.precision);
}

}  // namespace troupe::launch
