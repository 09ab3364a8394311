#pragma once

// Fully connected layers as products of planes (plane_vectors.h): units are positions, a row of the
// kernel or a sample's derivative is a plane. Units beyond the last whole sixteen, and whole layers
// of fewer, are the reference's.
//
// Order of accumulation, in float with fused multiply-adds: y over inputs, then the bias; dkernel
// over samples. dx is summed over units, with products rounded by themselves as the reference's;
// there samples are positions, and no unit is left over.
//
// With bf16 layers that are large enough multiply pairs of bfloat16 (bfloat16.h): of inputs for y,
// of units for dx, of samples for dkernel, in ascending order; an odd one's partner is zero. x, dy
// and the kernel are rounded; sums, bias and its gradient are float.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// Small layers, such as heads and those that read a few conditions, gain nothing and stay float.
inline bool dense_in_pairs(Precision precision, std::int64_t inputs, std::int64_t units) {
  return precision == Precision::kBf16 && inputs >= 16 && units % 16 == 0;
}

std::unique_ptr<Kernel> make_kernel(const DenseForward& dense);
std::unique_ptr<Kernel> make_kernel(const DenseBackwardInput& dense);
std::unique_ptr<Kernel> make_kernel(const DenseBackwardParameters& dense);
std::unique_ptr<Kernel> make_portable_kernel(const DenseForward& dense, Precision precision);
std::unique_ptr<Kernel> make_portable_kernel(const DenseBackwardInput& dense, Precision precision);
std::unique_ptr<Kernel> make_portable_kernel(const DenseBackwardParameters& dense,
                                             Precision precision);

}  // namespace troupe::model::cpu
