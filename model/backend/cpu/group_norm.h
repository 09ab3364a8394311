#pragma once

// Normalisation of single samples in groups of channels, several channels at once through Highway
// (plane_vectors.h); the same values as the reference's bit by bit: a sum for each channel in
// double, in the order of the rows, and no step fused.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const GroupNormForward& norm);
std::unique_ptr<Kernel> make_kernel(const GroupNormBackward& norm);

}  // namespace troupe::model::cpu
