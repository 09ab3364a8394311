#pragma once

// How a contribution vector and the sums of it stand in memory. In an exact reduction every element
// is a 64-bit integer. In a lossy one the gradients, which stand in front, are floats, and only the
// tensors behind them (moving statistics, losses, counts), on which decisions depend, are integers.
//
// Pure functions; any thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/gan.h"
#include "pipeline/steps/reduction_format.h"
#include "runtime/base/buffer.h"

namespace troupe::pipeline {

// Elements [offset, end()) of a contribution vector.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  bool floats = false;  // else 64-bit integers

  std::int64_t end() const { return offset + size; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(size) * (floats ? sizeof(float) : sizeof(std::int64_t));
  }
  bool operator==(const Bucket&) const = default;
};

// The parts of sums, to be added to.
struct MutableSums {
  std::span<float> floats;
  std::span<std::int64_t> integers;
};

struct SumLayout {
  std::int64_t elements = 0;
  std::int64_t floats = 0;  // the first of them, <= elements

  // Bytes of all, without gaps except to align the integers.
  std::size_t bytes() const { return offset(elements); }
  // The byte at which an element begins; for `elements`, the end.
  std::size_t offset(std::int64_t element) const;
  // True if the bucket is a part of it, of one kind throughout.
  bool holds(const Bucket& bucket) const;
  // The parts of a buffer of bytes().
  std::span<const float> floats_of(const runtime::Buffer& sums) const;
  std::span<const std::int64_t> integers_of(const runtime::Buffer& sums) const;
  MutableSums parts_of(runtime::Buffer& sums) const;
  bool operator==(const SumLayout&) const = default;
};

// `lossy`: how gradients are sent; none: exactly. CHECKs that gradients stand in front.
SumLayout sum_layout(const model::ContributionLayout& contributions,
                     std::optional<ReductionFormat> lossy);

}  // namespace troupe::pipeline
