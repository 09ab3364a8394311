#pragma once

// Batch normalisation over the last axis (channel_vectors.h). Statistics in double, each in several
// sums over rows that are added at the end; values in float with one fused multiply-add each.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const BatchNormTraining& norm);
std::unique_ptr<Kernel> make_kernel(const BatchNormInference& norm);
std::unique_ptr<Kernel> make_kernel(const BatchNormBackward& norm);

}  // namespace troupe::model::cpu
