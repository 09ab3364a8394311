#pragma once

// The optimiser of a step of workers (pipeline/steps/strategy.h). Pure; any thread.

#include <span>

#include "pipeline/steps/strategy.h"

namespace troupe::pipeline {

// v = momentum v + d, w -= rate (d + momentum v), where d is the mean change: the weights before
// minus those after. Each element is computed in double and rounded once. The spans have one size.
void outer_update(const OuterOptions& options, std::span<const float> change,
                  std::span<float> weights, std::span<float> velocity);

}  // namespace troupe::pipeline
