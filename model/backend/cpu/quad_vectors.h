#pragma once

// The inner loops of convolutions in int8 (int8.h), over planes as plane_vectors.h has them.
// Through Highway, and under its condition, with the instruction for four products at once
// (AVX512-VNNI) on hosts that have it. All sums are exact, so the bits are the same.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "model/backend/cpu/int8.h"

namespace troupe::model::cpu {

// sums[o][q] = scales[o] x (offsets[o] + sum over taps t, quads c and the four channels of each of
//   taps[t][c stride + q] weights[(t quads + c) outputs + o]).
// An offset is -kInt8Zero times the sum of the output's weights. |sum of q p| < 2^31.
struct QuadProduct {
  std::span<const Int8Quad* const> taps;
  std::int64_t quads = 0, stride = 0;
  const Int8Quad* weights = nullptr;
  std::int64_t outputs = 0;
  const std::int32_t* offsets = nullptr;
  const float* scales = nullptr;
  std::int64_t positions = 0;  // a multiple of kPositionLanes
  float* sums = nullptr;
  std::int64_t sums_stride = 0;
};
void multiply_planes(const QuadProduct& product);

// The products of one sum for which int32 suffices.
inline constexpr std::int64_t kMostProductsInt8 = INT32_MAX / (kInt8Most * kInt8Most);

// quads[c / 4][q] from numbers[c][q] x factors[c], rounded; channels that fill the last quad are
// zero. `plane`: positions, a multiple of kPositionLanes.
void to_quads(const float* numbers, std::int64_t channels, std::int64_t plane, const float* factors,
              Int8Quad* quads);

// The larger of |a| and |b|; NaN where one is. Without their sign the bits of floats are ordered as
// the floats are, NaN above all.
inline float larger_magnitude(float a, float b) {
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF; };
  return std::bit_cast<float>(std::max(bits(a), bits(b)));
}

// largest[c] = largest |x| of channel c of so many cells, channels being neighbours; NaN where
// there is one. `largest` has room for find_largest_floats(channels).
constexpr std::int64_t find_largest_floats(std::int64_t channels) { return 16 * channels; }
void find_largest(const float* cells, std::int64_t count, std::int64_t channels, float* largest);

}  // namespace troupe::model::cpu
