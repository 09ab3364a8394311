#pragma once

// Fully connected layers as products of planes (plane_vectors.h): units are positions, a row of the
// kernel or a sample's derivative is a plane. Units beyond the last whole sixteen, and whole layers
// of fewer, are the reference's.
//
// Order of accumulation, in float with fused multiply-adds: y over inputs, then the bias; dkernel
// over samples.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const DenseForward& dense);
std::unique_ptr<Kernel> make_kernel(const DenseBackwardParameters& dense);

}  // namespace troupe::model::cpu
