#pragma once

// The size of a step's gradient, for people: no decision depends on it.

#include <cstdint>

#include "model/gan.h"
#include "pipeline/steps/step_record.h"

namespace troupe::pipeline {

// The Euclidean norm of the mean gradient over M micro-batches, of the network that the step's
// optimiser updates: sqrt(sum_i (sums_i 2^-k / M)^2), in double. Infinite if it exceeds a double; 0
// without gradients. `record` is complete and of a step with these contributions.
//
// Pure function; any thread. Reads every sum once.
double gradient_norm(const model::ContributionLayout& contributions, const StepRecord& record,
                     std::uint32_t micro_batches);

}  // namespace troupe::pipeline
