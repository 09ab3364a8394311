#include "pipeline/steps/reduction_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7f800000u;
constexpr std::uint32_t kQuietBit = 0x00400000u;

constexpr float kLargestByte = 127.0f;
// The quotient of the largest float by 127 is rounded up, so that 127 of it would be infinite; 127
// of the float before it are not, or this would not compile.
constexpr float kLargestScale = std::bit_cast<float>(
    std::bit_cast<std::uint32_t>(std::numeric_limits<float>::max() / kLargestByte) - 1);
static_assert(kLargestByte * kLargestScale <= std::numeric_limits<float>::max());

// Adding 1.5 x 2^23 to |x| < 2^22 leaves a float whose last bit is worth 1: the addition rounds to
// nearest even, and the integer stands in the mantissa.
constexpr float kRounder = 0x1.8p23f;

// How a decoded value enters its place: it replaces the number there or is added to it.
struct Assign {
  static void apply(float value, float& place) { place = value; }
};
struct Add {
  static void apply(float value, float& place) { place += value; }
};

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}

template <class Use>
void decode_fp32(const std::byte* bytes, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) Use::apply(load<float>(bytes + 4 * i), out[i]);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Half a unit of the upper half less one, or exactly half where the upper half is odd. A carry
  // into the exponent gives the right result. A NaN needs care, as it would lose its mantissa or
  // its sign.
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > kInfinityBits;
  return static_cast<std::uint16_t>((is_nan ? bits | kQuietBit : rounded) >> 16);
}

void encode_bf16(const float* values, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) store(to_bf16(values[i]), out + 2 * i);
}

template <class Use>
void decode_bf16(const std::byte* bytes, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t upper = load<std::uint16_t>(bytes + 2 * i);
    Use::apply(std::bit_cast<float>(upper << 16), out[i]);
  }
}

// Bits of the largest |x|. Magnitudes of floats are ordered as their bits are, NaN above infinity.
std::int32_t largest_magnitude(const float* values, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(values[i]) & 0x7fffffff);
  }
  return largest;
}

// For a maximum above 0. No quotient x / scale exceeds 127 by more than a few roundings of the last
// bit, so none rounds to 128.
float scale_of(float maximum) {
  const float scale = std::min(maximum / kLargestByte, kLargestScale);
  // One unit is much among denormals: a scale that was rounded down, even to 0, would be too small.
  const bool too_small =
      scale < std::numeric_limits<float>::min() && scale * kLargestByte < maximum;
  return too_small ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) + 1) : scale;
}

void encode_block(const float* values, std::size_t count, std::byte* out) {
  const auto largest = static_cast<std::uint32_t>(largest_magnitude(values, count));
  std::byte* bytes = out + sizeof(float);
  if (largest == 0 || largest >= kInfinityBits) {
    store(largest == 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN(), out);
    std::fill_n(bytes, count, std::byte{0});
    return;
  }
  const float scale = scale_of(std::bit_cast<float>(largest));
  store(scale, out);
  for (std::size_t i = 0; i < count; ++i) {
    // The low byte of the mantissa is the integer in two's complement.
    const float rounded = values[i] / scale + kRounder;
    bytes[i] = static_cast<std::byte>(std::bit_cast<std::uint32_t>(rounded));
  }
}

template <class Use>
void decode_block(const std::byte* bytes, float* out, std::size_t count) {
  const auto scale = load<float>(bytes);
  bytes += sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    const int quotient = static_cast<std::int8_t>(bytes[i]);
    Use::apply(static_cast<float>(quotient) * scale, out[i]);
  }
}

void encode_int8(const float* values, std::size_t count, std::byte* out) {
  while (count > 0) {
    const std::size_t block = std::min(count, kInt8Block);
    encode_block(values, block, out);
    values += block;
    out += sizeof(float) + block;
    count -= block;
  }
}

void encode_any(ReductionFormat format, std::span<const float> values, std::byte* out) {
  if (values.empty()) return;
  switch (format) {
    case ReductionFormat::kFp32:
      std::memcpy(out, values.data(), values.size_bytes());
      return;
    case ReductionFormat::kBf16:
      return encode_bf16(values.data(), values.size(), out);
    case ReductionFormat::kInt8:
      return encode_int8(values.data(), values.size(), out);
  }
}

#if defined(__x86_64__)
// The same loops in vectors of twice the width, with the packing that the baseline lacks: twice as
// fast. No fused products among the instructions, so the bits are the same.
__attribute__((target("avx2"), flatten)) void encode_avx2(ReductionFormat format,
                                                          std::span<const float> values,
                                                          std::byte* out) {
  encode_any(format, values, out);
}
#endif

template <class Use>
void decode_int8(const std::byte* bytes, float* out, std::size_t count) {
  while (count > 0) {
    const std::size_t block = std::min(count, kInt8Block);
    decode_block<Use>(bytes, out, block);
    bytes += sizeof(float) + block;
    out += block;
    count -= block;
  }
}

template <class Use>
void decode_with(ReductionFormat format, std::span<const std::byte> bytes, std::span<float> out) {
  CHECK(bytes.size() == encoded_bytes(format, out.size()), "the bytes of other elements");
  switch (format) {
    case ReductionFormat::kFp32:
      return decode_fp32<Use>(bytes.data(), out.data(), out.size());
    case ReductionFormat::kBf16:
      return decode_bf16<Use>(bytes.data(), out.data(), out.size());
    case ReductionFormat::kInt8:
      return decode_int8<Use>(bytes.data(), out.data(), out.size());
  }
}

}  // namespace

std::size_t encoded_bytes(ReductionFormat format, std::size_t elements) {
  switch (format) {
    case ReductionFormat::kFp32:
      return elements * sizeof(float);
    case ReductionFormat::kBf16:
      return elements * sizeof(std::uint16_t);
    case ReductionFormat::kInt8:
      return elements + (elements + kInt8Block - 1) / kInt8Block * sizeof(float);
  }
  CHECK(false, "a format of another version");
  return 0;
}

void encode_baseline(ReductionFormat format, std::span<const float> values,
                     std::span<std::byte> out) {
  CHECK(out.size() == encoded_bytes(format, values.size()), "room for other elements");
  encode_any(format, values, out.data());
}

void encode(ReductionFormat format, std::span<const float> values, std::span<std::byte> out) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) {
    CHECK(out.size() == encoded_bytes(format, values.size()), "room for other elements");
    return encode_avx2(format, values, out.data());
  }
#endif
  encode_baseline(format, values, out);
}

void decode(ReductionFormat format, std::span<const std::byte> bytes, std::span<float> out) {
  decode_with<Assign>(format, bytes, out);
}

void decode_add(ReductionFormat format, std::span<const std::byte> bytes, std::span<float> sum) {
  decode_with<Add>(format, bytes, sum);
}

}  // namespace troupe::pipeline
