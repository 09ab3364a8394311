#pragma once

// Numbers of eight significant bits: the upper half of a float. Our convolutions multiply them when
// the precision is bf16; everything else stays float.
//
// Two numbers fill the lane of a float, and are multiplied and added at once, as one instruction of
// AVX512-BF16 does (VDPBF16PS):
//   sum = fused(first a, first b, fused(second a, second b, sum)),
// each fused multiply-add rounded to the nearest float. Subnormal operands, the sum among them,
// count as zero, and results that are subnormal after rounding become zero; zeros keep their sign.
// Hosts without the instruction compute exactly that. The payload of a NaN is not specified.

#include <bit>
#include <cstdint>

namespace troupe::model::cpu {

struct Bfloat16 {
  std::uint16_t bits = 0;
};

// The two numbers of one lane; `first` is the lower half.
struct Bfloat16Pair {
  Bfloat16 first, second;
};
static_assert(sizeof(Bfloat16Pair) == sizeof(float));

// One number of a pair as a float. The plane of the second numbers stands before that of the first
// ones, so that sums over planes, one after the other and with subnormals flushed, are those above.
struct RoundedFloat {
  float value = 0.0f;
};

// To the nearest, of two the even one; NaN stays NaN.
inline Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

inline float to_float(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

inline RoundedFloat to_rounded(float value) { return {to_float(to_bfloat16(value))}; }

}  // namespace troupe::model::cpu
