#pragma once

// How large a step's gradient is, for people: nothing is decided by it.

#include <cstdint>

#include "model/gan.h"
#include "pipeline/steps/step_record.h"

namespace troupe::pipeline {

// The Euclidean norm of the mean gradient over M micro-batches, of the network that the step's
// optimiser updates: sqrt(sum_i (sums_i 2^-k / M)^2), in double. Infinite where that is beyond a
// double; 0 without gradients. `record` is complete and of a step with these contributions.
//
// Pure function; any thread. Reads every sum once.
double gradient_norm(const model::ContributionLayout& contributions, const StepRecord& record,
                     std::uint32_t micro_batches);

}  // namespace troupe::pipeline
