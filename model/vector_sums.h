#pragma once

// Sums over the micro-batches of what each contributes to a step, where a backend's memory has it.

#include <cstdint>
#include <span>

#include "model/exact_sum.h"

namespace troupe::model {

// Vectors that stand side by side in one allocation: `stride` elements from one to the next.
struct Vectors {
  const float* first = nullptr;
  std::int64_t count = 0, stride = 0;
};

// Elements of each vector that have one scale.
struct SumPart {
  std::int64_t begin = 0, size = 0;
  std::int16_t k = kNoExponent;
};

// Any thread. `sum`, on the host, has the parts one behind the other, and what is added comes to
// it. `reports` has one per part, which tells of all vectors: what quantise_add() tells of exact
// sums, and of floats `non_finite` alone.
class VectorSums {
 public:
  virtual ~VectorSums() = default;
  // As quantise_add() adds each vector's.
  virtual void add_exactly(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                           std::uint32_t micro_batches, std::span<std::int64_t> sum,
                           std::span<QuantiseReport> reports) const = 0;
  // In the order of the vectors, each sum rounded, from the zeros that `sum` is.
  virtual void add_floats(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                          std::span<float> sum, std::span<QuantiseReport> reports) const = 0;
};

// Of vectors in the host's memory.
const VectorSums& host_sums();

}  // namespace troupe::model
