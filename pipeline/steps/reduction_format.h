#pragma once

// The wire formats of floating-point sums in a reduction that is not exact: fewer bytes than the 8
// that an element of an exact sum takes, and so faster.
//
//   kFp32  4 bytes an element: the float as it is, every bit of it.
//   kBf16  2 bytes: the upper half of the float (bfloat16), rounded to nearest even, so a relative
//          error of at most 2^-8 and of denormals an absolute one of 2^-134. A number that rounds
//          beyond the largest bfloat16 (from 3.396e38 on) becomes infinite, as IEEE rounding has
//          it; infinities and zeros keep their sign; a NaN stays a NaN.
//   kInt8  blocks of kInt8Block elements, the last one shorter: a float scale, then a signed byte
//          an element, worth byte x scale. scale = max|x| / 127, and bytes are rounded to nearest
//          even, so an error of at most half a scale, plus what the two roundings of scale and
//          product add: below 0.50002 scales. A block of zeros is exact (but for the sign of zero).
//          Where the scale would be denormal it is rounded up, so that 127 of it reach the maximum.
//
// 256 elements a block: the scale costs 4 bytes in 260 (1.5 %), a large element spoils the accuracy
// of 255 neighbours at most, and a block stays in the first-level cache between its two passes.
// Blocks are counted from the first element of the span that is encoded: members that cut a sum at
// the same places get the same bytes, and others do not.
//
// NaN and infinity have no business in a sum that is to be applied, and the step header ends the
// run that computes one. Here they never go unseen: a kInt8 block with one of them has NaN for its
// scale and decodes to NaN throughout.
//
// Pure functions, little endian, any alignment of the bytes, any thread; nothing is allocated.
// Plain IEEE operations in a fixed order: the same bits on every x86-64 host, provided that the
// thread rounds to nearest and keeps denormals (model/backend/float_environment.h). The two spans
// of a call must not overlap.

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::pipeline {

enum class ReductionFormat : std::uint8_t { kFp32, kBf16, kInt8 };

// Elements that share a scale in kInt8.
inline constexpr std::size_t kInt8Block = 256;

// Bytes of `elements` encoded elements, exactly. A range that is cut into pieces takes the same
// bytes in the same order as the whole if, for kInt8, all but the last are multiples of kInt8Block.
std::size_t encoded_bytes(ReductionFormat format, std::size_t elements);

// Writes `values` to `out`. CHECKs that out.size() == encoded_bytes(format, values.size()).
void encode(ReductionFormat format, std::span<const float> values, std::span<std::byte> out);

// The same bytes by instructions that every x86-64 host has; encode() takes AVX2 where it is there.
void encode_baseline(ReductionFormat format, std::span<const float> values,
                     std::span<std::byte> out);

// Reads all of `out` from `bytes`. Defined for any content of the bytes, whoever wrote them: at
// worst the values are NaN or infinite. CHECKs that bytes.size() == encoded_bytes(format,
// out.size()): the caller has refused other lengths.
void decode(ReductionFormat format, std::span<const std::byte> bytes, std::span<float> out);

// sum[i] += what decode() would give; same conditions.
void decode_add(ReductionFormat format, std::span<const std::byte> bytes, std::span<float> sum);

}  // namespace troupe::pipeline
