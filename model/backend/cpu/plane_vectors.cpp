#include "model/backend/cpu/plane_vectors.h"

#include <algorithm>
#include <array>

// This file is compiled once for each kind of vector, in a namespace of its own; the scalar one,
// which Highway wants, never runs.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/plane_vectors.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, kPositionLanes>;
using Vector = hn::Vec<Tag>;
constexpr std::int64_t kLanes = hn::MaxLanes(Tag());
constexpr int kRegisters = kLanes >= 16 ? 32 : 16;
constexpr int kMostOutputs = kLanes >= 16 ? 8 : 6;  // of one block

std::int64_t vector_lanes() { return kLanes; }

// Vectors of positions beside `outputs` outputs, so that sums and operands fit the registers.
constexpr int vectors_beside(int outputs) {
  return std::clamp((kRegisters - 1) / (outputs + 1), 1, 8);
}

// Calls use(first, count) for the parts of [0, all), as equal as possible and of `most` at most.
template <class Use>
void in_parts(std::int64_t all, std::int64_t most, const Use& use) {
  const std::int64_t parts = (all + most - 1) / most;
  std::int64_t first = 0;
  for (std::int64_t i = 1; i <= parts; ++i) {
    const std::int64_t next = all * i / parts;
    use(first, next - first);
    first = next;
  }
}

template <int kOutputs, int kVectors>
HWY_NOINLINE void multiply_block(const PlaneProduct& p, std::int64_t output,
                                 std::int64_t position) {
  const Tag tag;
  Vector sums[kOutputs][kVectors];
  for (auto& row : sums) {
    for (Vector& sum : row) sum = hn::Zero(tag);
  }
  const float* weights = p.weights + output;
  for (const float* tap : p.taps) {
    const float* values = tap + position;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      Vector value[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) value[v] = hn::LoadU(tag, values + v * kLanes);
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        const Vector weight = hn::Set(tag, weights[o]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[o][v] = hn::MulAdd(value[v], weight, sums[o][v]);
      }
      values += p.channel_stride;
      weights += p.weights_stride;
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
    float* to = p.sums + (output + o) * p.sums_stride + position;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[o][v], tag, to + v * kLanes);
  }
}

using MultiplyBlock = void (*)(const PlaneProduct&, std::int64_t output, std::int64_t position);

template <int kOutputs, int kVectors>
constexpr MultiplyBlock multiply_block_of() {
  if constexpr (kOutputs <= kMostOutputs && kVectors <= vectors_beside(kOutputs)) {
    return &multiply_block<kOutputs, kVectors>;
  }
  return nullptr;
}

template <int kOutputs>
constexpr std::array<MultiplyBlock, 8> multiply_blocks_of() {
  return {multiply_block_of<kOutputs, 1>(), multiply_block_of<kOutputs, 2>(),
          multiply_block_of<kOutputs, 3>(), multiply_block_of<kOutputs, 4>(),
          multiply_block_of<kOutputs, 5>(), multiply_block_of<kOutputs, 6>(),
          multiply_block_of<kOutputs, 7>(), multiply_block_of<kOutputs, 8>()};
}

void multiply_planes(const PlaneProduct& product) {
  static constexpr std::array<std::array<MultiplyBlock, 8>, 8> kBlocks = {
      multiply_blocks_of<1>(), multiply_blocks_of<2>(), multiply_blocks_of<3>(),
      multiply_blocks_of<4>(), multiply_blocks_of<5>(), multiply_blocks_of<6>(),
      multiply_blocks_of<7>(), multiply_blocks_of<8>()};
  in_parts(product.outputs, kMostOutputs, [&](std::int64_t output, std::int64_t outputs) {
    const auto& blocks = kBlocks[static_cast<std::size_t>(outputs - 1)];
    in_parts(product.positions / kLanes, vectors_beside(static_cast<int>(outputs)),
             [&](std::int64_t vector, std::int64_t vectors) {
               blocks[static_cast<std::size_t>(vectors - 1)](product, output, vector * kLanes);
             });
  });
}

void add_planes(std::span<const float* const> planes, std::int64_t positions, float* sum) {
  const Tag tag;
  constexpr std::int64_t kVectors = kPositionLanes / kLanes;
  for (std::int64_t q = 0; q < positions; q += kPositionLanes) {
    Vector sums[kVectors];
    for (Vector& of_lanes : sums) of_lanes = hn::Zero(tag);
    for (const float* plane : planes) {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        sums[v] = hn::Add(sums[v], hn::LoadU(tag, plane + q + v * kLanes));
      }
    }
    for (std::int64_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], tag, sum + q + v * kLanes);
  }
}

// The sum of sixteen lanes, in the order that plane_vectors.h gives.
HWY_INLINE float sum_of_lanes(const float* lanes) {
  float four[4];
  for (int i = 0; i < 4; ++i) {
    four[i] = (lanes[i] + lanes[i + 8]) + (lanes[i + 4] + lanes[i + 12]);
  }
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// Keeps the compiler from reading memory again for every use of a value, which is what its fused
// multiply-adds with an operand in memory come to.
HWY_INLINE Vector in_register(Vector value) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 32
  __asm__("" : "+v"(value.raw));
#endif
  return value;
}

// kRows x kOutputs sums, sixteen lanes each.
template <int kRows, int kOutputs>
HWY_NOINLINE void dot_block(const PlaneDots& p, std::int64_t row, std::int64_t output,
                            float* lanes) {
  const Tag tag;
  const std::int64_t* rows = p.rows.data() + row;
  for (std::int64_t half = 0; half < kPositionLanes; half += kLanes) {
    Vector sums[kRows][kOutputs];
    for (auto& of_row : sums) {
      for (Vector& sum : of_row) sum = hn::Zero(tag);
    }
    for (std::size_t pair = 0; pair < p.left.size(); ++pair) {
      const float* left[kRows];
      for (int r = 0; r < kRows; ++r) left[r] = p.left[pair] + rows[r];
      const float* right = p.right[pair] + output * p.right_stride;
      for (std::int64_t q = half; q < p.positions; q += kPositionLanes) {
        Vector value[kRows];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) value[r] = hn::LoadU(tag, left[r] + q);
        const float* derivatives = right + q;
#pragma GCC unroll 8
        for (int o = 0; o < kOutputs; ++o) {
          const Vector derivative = in_register(hn::LoadU(tag, derivatives));
          derivatives += p.right_stride;
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            sums[r][o] = hn::MulAdd(value[r], derivative, sums[r][o]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        hn::StoreU(sums[r][o], tag, lanes + (r * kOutputs + o) * kPositionLanes + half);
      }
    }
  }
}

constexpr int rows_beside(int outputs) {
  return std::clamp((kRegisters - 1) / (outputs + 1), 1, 8);
}

template <int kRows, int kOutputs>
void add_dot_block(const PlaneDots& p, std::int64_t row, std::int64_t output) {
  alignas(64) float lanes[kRows * kOutputs * kPositionLanes];
  dot_block<kRows, kOutputs>(p, row, output, lanes);
  const float* of_sum = lanes;
  for (int r = 0; r < kRows; ++r) {
    float* to = p.sums + (row + r) * p.sums_stride + output;
    for (int o = 0; o < kOutputs; ++o, of_sum += kPositionLanes) to[o] += sum_of_lanes(of_sum);
  }
}

using DotBlock = void (*)(const PlaneDots&, std::int64_t row, std::int64_t output);

template <int kRows, int kOutputs>
constexpr DotBlock dot_block_of() {
  if constexpr (kOutputs <= kMostOutputs && kRows <= rows_beside(kOutputs)) {
    return &add_dot_block<kRows, kOutputs>;
  }
  return nullptr;
}

template <int kOutputs>
constexpr std::array<DotBlock, 8> dot_blocks_of() {
  return {dot_block_of<1, kOutputs>(), dot_block_of<2, kOutputs>(), dot_block_of<3, kOutputs>(),
          dot_block_of<4, kOutputs>(), dot_block_of<5, kOutputs>(), dot_block_of<6, kOutputs>(),
          dot_block_of<7, kOutputs>(), dot_block_of<8, kOutputs>()};
}

void add_plane_dots(const PlaneDots& dots) {
  static constexpr std::array<std::array<DotBlock, 8>, 8> kBlocks = {
      dot_blocks_of<1>(), dot_blocks_of<2>(), dot_blocks_of<3>(), dot_blocks_of<4>(),
      dot_blocks_of<5>(), dot_blocks_of<6>(), dot_blocks_of<7>(), dot_blocks_of<8>()};
  in_parts(dots.outputs, kMostOutputs, [&](std::int64_t output, std::int64_t outputs) {
    const auto& blocks = kBlocks[static_cast<std::size_t>(outputs - 1)];
    const auto rows = static_cast<std::int64_t>(dots.rows.size());
    in_parts(rows, rows_beside(static_cast<int>(outputs)),
             [&](std::int64_t row, std::int64_t count) {
               blocks[static_cast<std::size_t>(count - 1)](dots, row, output);
             });
  });
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(vector_lanes);
HWY_EXPORT(multiply_planes);
HWY_EXPORT(add_planes);
HWY_EXPORT(add_plane_dots);

bool plane_vectors_supported() {
  // Older vectors, whose numbers are higher, have no fused multiply-add.
  constexpr auto kWithFused = HWY_AVX2 | (HWY_AVX2 - 1);
  return (hwy::SupportedTargets() & kWithFused) != 0;
}

std::int64_t vector_lanes() { return HWY_DYNAMIC_DISPATCH(vector_lanes)(); }

void multiply_planes(const PlaneProduct& product) {
  HWY_DYNAMIC_DISPATCH(multiply_planes)(product);
}

void add_planes(std::span<const float* const> planes, std::int64_t positions, float* sum) {
  HWY_DYNAMIC_DISPATCH(add_planes)(planes, positions, sum);
}

void add_plane_dots(const PlaneDots& dots) { HWY_DYNAMIC_DISPATCH(add_plane_dots)(dots); }

}  // namespace troupe::model::cpu

#endif
