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

// Any thread. The vectors are complete: on a device the caller has waited for them
// (Memory::wait_for). `sum`, on the host, has the parts one behind the other, and what is added
// comes to it. `reports` has one per part, which tells of all vectors: what quantise_add() tells of
// exact sums, and of floats `non_finite` alone. With `non_finite` the rest means nothing.
class VectorSums {
 public:
  virtual ~VectorSums() = default;
  // Adds each vector as quantise_add() does.
  virtual void add_exactly(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                           std::uint32_t micro_batches, std::span<std::int64_t> sum,
                           std::span<QuantiseReport> reports) const = 0;
  // Adds the vectors in their order and rounds each sum. `sum` is zero before.
  virtual void add_floats(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                          std::span<float> sum, std::span<QuantiseReport> reports) const = 0;
};

// Sums of vectors in the host's memory.
const VectorSums& host_sums();

}  // namespace troupe::model
