#include "launch/backend_choice.h"

namespace troupe::launch {

std::unique_ptr<model::Backend> make_backend(config::Kernels kernels) {
  if (kernels == config::Kernels::kFastest) return model::make_cpu_backend();
  return model::make_reference_backend(model::DataType::kFloat32);
}

}  // namespace troupe::launch
