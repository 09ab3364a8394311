#pragma once

// How a contribution vector and the sums of it stand in memory. In an exact reduction every element
// is a 64-bit integer. Otherwise the gradients, which stand in front, are of another kind, and only
// the tensors behind them (moving statistics, losses, counts), on which decisions depend, are
// 64-bit integers.
//
// Pure functions; any thread.

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/gan.h"
#include "runtime/base/buffer.h"

namespace troupe::pipeline {

// What an element of sums is.
enum class SumKind : std::uint8_t {
  kInt64,    // exact, with a scale per tensor (model/exact_sum.h)
  kFloat32,  // of a lossy reduction
  kInt16,    // of numbers rounded at random, with a scale per tensor (model/rounded_sum.h)
};

constexpr std::size_t bytes_of(SumKind kind) {
  return kind == SumKind::kInt64     ? sizeof(std::int64_t)
         : kind == SumKind::kFloat32 ? sizeof(float)
                                     : sizeof(std::int16_t);
}

// Elements [offset, end()) of a contribution vector.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  SumKind kind = SumKind::kInt64;

  std::int64_t end() const { return offset + size; }
  std::size_t bytes() const { return static_cast<std::size_t>(size) * bytes_of(kind); }
  bool operator==(const Bucket&) const = default;
};

// The first elements of sums, where they are not 64-bit integers as the others.
struct SumFront {
  std::int64_t size = 0;
  SumKind kind = SumKind::kInt64;

  bool operator==(const SumFront&) const = default;
};

// The parts of sums, to be added to.
struct MutableSums {
  std::span<float> floats;
  std::span<std::int64_t> integers;
  std::span<std::int16_t> rounded;
};

struct SumLayout {
  std::int64_t elements = 0;
  SumFront front;  // of at most as many

  // Bytes of all, without gaps except to align the integers.
  std::size_t bytes() const { return offset(elements); }
  // The byte at which an element begins; for `elements`, the end.
  std::size_t offset(std::int64_t element) const;
  // True if the bucket is a part of it, of one kind throughout.
  bool holds(const Bucket& bucket) const;
  // How many of that kind stand in front.
  std::int64_t floats() const { return front.kind == SumKind::kFloat32 ? front.size : 0; }
  std::int64_t rounded() const { return front.kind == SumKind::kInt16 ? front.size : 0; }
  // The parts of a buffer of bytes(). Empty: none is of that kind.
  std::span<const float> floats_of(const runtime::Buffer& sums) const;
  std::span<const std::int16_t> rounded_of(const runtime::Buffer& sums) const;
  std::span<const std::int64_t> integers_of(const runtime::Buffer& sums) const;
  MutableSums parts_of(runtime::Buffer& sums) const;
  bool operator==(const SumLayout&) const = default;
};

// `gradients`: what they are summed as. CHECKs that they stand in front.
SumLayout sum_layout(const model::ContributionLayout& contributions, SumKind gradients);

}  // namespace troupe::pipeline
