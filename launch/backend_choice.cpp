#include "launch/backend_choice.h"

namespace troupe::launch {

runtime::Result<std::unique_ptr<model::Backend>> make_backend(config::Kernels kernels) {
  if (kernels == config::Kernels::kFastest) return model::make_cpu_backend();
  return model::make_portable_backend();
}

}  // namespace troupe::launch
