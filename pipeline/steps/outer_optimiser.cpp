#include "pipeline/steps/outer_optimiser.h"

#include "runtime/base/error.h"

namespace troupe::pipeline {

void outer_update(const OuterOptions& options, std::span<const float> change,
                  std::span<float> weights, std::span<float> velocity) {
  CHECK(change.size() == weights.size() && velocity.size() == weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double d = change[i];
    const double v = options.momentum * velocity[i] + d;
    velocity[i] = static_cast<float>(v);
    weights[i] = static_cast<float>(weights[i] - options.rate * (d + options.momentum * v));
  }
}

}  // namespace troupe::pipeline
