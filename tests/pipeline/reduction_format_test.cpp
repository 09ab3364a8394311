#include "pipeline/steps/reduction_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using ::testing::Each;

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;
using Limits = std::numeric_limits<float>;

constexpr ReductionFormat kFormats[] = {ReductionFormat::kFp32, ReductionFormat::kBf16,
                                        ReductionFormat::kInt8};
constexpr float kInfinity = Limits::infinity();
constexpr float kUnit = Limits::denorm_min();

Bytes encoded(ReductionFormat format, const Floats& values) {
  Bytes bytes(encoded_bytes(format, values.size()));
  encode(format, values, bytes);
  return bytes;
}

Floats decoded(ReductionFormat format, const Bytes& bytes, std::size_t count) {
  Floats values(count);
  decode(format, bytes, values);
  return values;
}

Floats round_trip(ReductionFormat format, const Floats& values) {
  return decoded(format, encoded(format, values), values.size());
}

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

float bf16_of(float value) { return round_trip(ReductionFormat::kBf16, {value})[0]; }

// Any bits a float can have.
Floats any_floats(std::uint32_t number, std::size_t count) {
  Floats values(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    values[i] = std::bit_cast<float>(runtime::random_word({.seed = 3, .micro_batch = number}, i));
  }
  return values;
}

// Normal numbers around 2^exponent.
Floats normal_floats(std::uint32_t number, std::size_t count, int exponent) {
  Floats values(count);
  runtime::fill_normal({.seed = 4, .micro_batch = number}, values.data(),
                       static_cast<std::uint32_t>(count));
  for (float& value : values) value = std::ldexp(value, exponent);
  return values;
}

double largest(const Floats& values) {
  double found = 0;
  for (const float value : values) found = std::max(found, std::fabs(double{value}));
  return found;
}

// The nearest multiple of the last of eight binary digits, ties to even: bfloat16 in its
// definition's own terms. For finite values.
double nearest_bf16(float value) {
  int exponent = 0;
  std::frexp(double{value}, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 8, -133));
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) < 0x1p128 ? rounded : std::copysign(double{kInfinity}, rounded);
}

TEST(ReductionFormat, SizesAreThoseOfElementsAndScales) {
  EXPECT_EQ(encoded_bytes(ReductionFormat::kFp32, 1000), 4000u);
  EXPECT_EQ(encoded_bytes(ReductionFormat::kBf16, 1000), 2000u);
  EXPECT_EQ(encoded_bytes(ReductionFormat::kInt8, 1000), 1016u);
  EXPECT_EQ(encoded_bytes(ReductionFormat::kInt8, 256), 260u);
  EXPECT_EQ(encoded_bytes(ReductionFormat::kInt8, 257), 265u);
  for (const ReductionFormat format : kFormats) {
    EXPECT_EQ(encoded_bytes(format, 0), 0u);
    EXPECT_EQ(encoded(format, {}), Bytes{});
  }
}

TEST(ReductionFormat, Fp32KeepsEveryBit) {
  const Floats values = any_floats(0, 10'000);
  const Floats back = round_trip(ReductionFormat::kFp32, values);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(bits_of(back[i]), bits_of(values[i]));
}

TEST(ReductionFormat, Bf16RoundsAnyFloatToNearestEven) {
  for (std::uint32_t number = 0; number < 20; ++number) {
    const Floats values = any_floats(number, 10'007);
    const Floats back = round_trip(ReductionFormat::kBf16, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) {
        ASSERT_EQ(back[i], static_cast<float>(nearest_bf16(values[i]))) << values[i];
        ASSERT_EQ(std::signbit(back[i]), std::signbit(values[i]));
      } else {
        ASSERT_EQ(std::isnan(back[i]), std::isnan(values[i]));
      }
    }
  }
}

TEST(ReductionFormat, Bf16TiesGoToTheEvenNeighbour) {
  EXPECT_EQ(bf16_of(1.0f + 0x1p-8f), 1.0f);
  EXPECT_EQ(bf16_of(1.0f + 3 * 0x1p-8f), 1.0f + 0x1p-6f);
  EXPECT_EQ(bf16_of(std::nextafter(1.0f + 0x1p-8f, 2.0f)), 1.0f + 0x1p-7f);
  EXPECT_EQ(bf16_of(-1.0f - 0x1p-8f), -1.0f);
}

TEST(ReductionFormat, Bf16RelativeErrorIsAtMostTwoToTheMinusEight) {
  for (const int exponent : {-100, -3, 0, 60}) {
    const Floats values = normal_floats(1, 10'000, exponent);
    const Floats back = round_trip(ReductionFormat::kBf16, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::fabs(double{back[i]} - values[i]), 0x1p-8 * std::fabs(values[i]));
    }
  }
}

TEST(ReductionFormat, Bf16SpecialValuesStay) {
  for (const float value :
       {0.0f, -0.0f, kInfinity, -kInfinity, 0x1p-133f, -0x1p-126f, 0x1.fep127f, Limits::min()}) {
    EXPECT_EQ(bits_of(bf16_of(value)), bits_of(value)) << value;
  }
  EXPECT_EQ(bf16_of(Limits::max()), kInfinity);
  EXPECT_EQ(bf16_of(-Limits::max()), -kInfinity);
  EXPECT_EQ(bf16_of(kUnit), 0.0f);
  // NaN whose mantissa is all in the half that is cut off, all ones, and with a sign.
  for (const std::uint32_t bits :
       {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    const float back = bf16_of(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(back));
    EXPECT_EQ(std::signbit(back), bits >> 31 == 1);
  }
}

// Against the definition in double: the bytes it writes and what they are worth.
void expect_int8_block(const Floats& values) {
  const Floats back = round_trip(ReductionFormat::kInt8, values);
  const double scale = largest(values) / 127;
  // One unit: a denormal scale is a multiple of it.
  const double bound = 0.50002 * std::max(scale, double{kUnit}) + kUnit;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(std::isfinite(back[i])) << values[i];
    ASSERT_LE(std::fabs(double{back[i]} - values[i]), bound) << values[i] << " of " << scale;
  }
}

TEST(ReductionFormat, Int8ErrorIsHalfAScaleAtEveryMagnitude) {
  for (int exponent = -149; exponent <= 125; ++exponent) {
    for (const std::size_t count : {1u, 7u, 255u, 256u}) {
      expect_int8_block(normal_floats(static_cast<std::uint32_t>(count), count, exponent));
    }
  }
}

TEST(ReductionFormat, Int8ReachesTheEndsOfTheFloatRangeWithoutOverflow) {
  for (std::uint32_t below = 0; below < 2000; ++below) {
    const float high = std::bit_cast<float>(bits_of(Limits::max()) - below);
    expect_int8_block({high, -high, high / 2, 1.0f, 0.0f});
  }
}

TEST(ReductionFormat, Int8KeepsBlocksOfDenormals) {
  for (std::uint32_t units = 1; units < 2000; ++units) {
    const float high = std::bit_cast<float>(units);
    const Floats values{high, -high, std::bit_cast<float>(units / 2), kUnit, 0.0f};
    expect_int8_block(values);
    if (units > 127) continue;
    const Floats back = round_trip(ReductionFormat::kInt8, values);
    EXPECT_EQ(back, values) << "a scale of one unit has room for " << units;
  }
}

TEST(ReductionFormat, Int8BytesAreRoundedHalfToEven) {
  // The maximum is 127, so the scale is 1.
  const Floats values{127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.75f, -127.0f, 126.5f};
  const Floats expected{127, 0, 2, 2, 0, -2, 1, -127, 126};
  EXPECT_EQ(round_trip(ReductionFormat::kInt8, values), expected);
}

TEST(ReductionFormat, Int8BlocksHaveScalesOfTheirOwn) {
  Floats values(3 * kInt8Block + 5, 0x1p-20f);
  values[kInt8Block] = 1e30f;      // spoils its own block alone
  values[2 * kInt8Block] = -0.0f;  // and this one is of zeros
  std::fill_n(values.begin() + 2 * kInt8Block + 1, kInt8Block - 1, 0.0f);
  const Floats back = round_trip(ReductionFormat::kInt8, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t block = i / kInt8Block;
    const float expected = block == 1 && i != kInt8Block ? 0.0f : values[i];
    ASSERT_FLOAT_EQ(back[i], expected) << i;
  }
  for (std::size_t i = 0; i < kInt8Block; ++i) EXPECT_EQ(back[2 * kInt8Block + i], 0.0f);
}

TEST(ReductionFormat, Int8BlockWithANonFiniteElementIsNaNThroughoutAndNoOther) {
  for (const float bad : {kInfinity, -kInfinity, Limits::quiet_NaN()}) {
    Floats values(3 * kInt8Block, 1.0f);
    values[kInt8Block + 17] = bad;
    const Floats back = round_trip(ReductionFormat::kInt8, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::isnan(back[i]), i / kInt8Block == 1) << i;
    }
  }
}

// Room that is not written would show an unknown peer what was in memory before.
TEST(ReductionFormat, Int8BlocksWithoutAScaleHaveBytesOfZero) {
  for (const float all : {0.0f, -0.0f, kInfinity, Limits::quiet_NaN()}) {
    Bytes room(encoded_bytes(ReductionFormat::kInt8, 40), std::byte{0xee});
    encode(ReductionFormat::kInt8, Floats(40, all), room);
    EXPECT_THAT(Bytes(room.begin() + sizeof(float), room.end()), Each(std::byte{0}));
  }
}

TEST(ReductionFormat, PiecesOfWholeBlocksGiveTheBytesOfTheWhole) {
  const Floats values = normal_floats(5, 5 * kInt8Block + 11, 0);
  for (const ReductionFormat format : kFormats) {
    Bytes pieces(encoded_bytes(format, values.size()));
    const std::size_t cut = 2 * kInt8Block;
    const std::size_t cut_bytes = encoded_bytes(format, cut);
    encode(format, std::span(values).first(cut), std::span(pieces).first(cut_bytes));
    encode(format, std::span(values).subspan(cut), std::span(pieces).subspan(cut_bytes));
    EXPECT_EQ(pieces, encoded(format, values));
  }
}

// The bits must not depend on how much of a span fits the compiler's vectors, nor on alignment.
TEST(ReductionFormat, EveryLengthAndAlignmentGivesTheBitsOfOneElementAtATime) {
  const Floats values = normal_floats(6, 70, -3);
  const Bytes whole = encoded(ReductionFormat::kBf16, values);
  for (std::size_t offset = 0; offset < 4; ++offset) {
    for (std::size_t count = 0; count + offset <= values.size(); ++count) {
      const auto some = std::span(values).subspan(offset, count);
      Bytes room(4 + encoded_bytes(ReductionFormat::kBf16, count), std::byte{0xee});
      const auto out = std::span(room).subspan(1, room.size() - 4);
      encode(ReductionFormat::kBf16, some, out);
      ASSERT_TRUE(std::equal(out.begin(), out.end(), whole.begin() + 2 * offset));
      ASSERT_THAT(Bytes(room.end() - 3, room.end()), Each(std::byte{0xee}));
    }
  }
  for (std::size_t count = 1; count <= values.size(); ++count) {
    Floats some(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
    some[0] = 8.0f;  // the maximum, and so the scale, of every length
    Bytes room(4 + encoded_bytes(ReductionFormat::kInt8, count), std::byte{0xee});
    const auto out = std::span(room).subspan(1, room.size() - 4);
    encode(ReductionFormat::kInt8, some, out);
    Floats back(count);
    decode(ReductionFormat::kInt8, out, back);
    for (std::size_t i = 1; i < count; ++i) {
      ASSERT_EQ(back[i], round_trip(ReductionFormat::kInt8, {8.0f, some[i]})[1]);
    }
    ASSERT_THAT(Bytes(room.end() - 3, room.end()), Each(std::byte{0xee}));
  }
}

TEST(ReductionFormat, WiderVectorsGiveTheBytesOfTheBaseline) {
  for (std::uint32_t number = 0; number < 400; ++number) {
    Floats values = number % 2 == 0
                        ? any_floats(number, 5 + number)
                        : normal_floats(number, 5 + number, 40 - static_cast<int>(number % 180));
    if (number % 3 == 0) values[number % 5] = 0.0f;
    for (const ReductionFormat format : kFormats) {
      Bytes baseline(encoded_bytes(format, values.size()));
      encode_baseline(format, values, baseline);
      ASSERT_EQ(encoded(format, values), baseline);
    }
  }
}

TEST(ReductionFormat, DecodeAddAddsWhatDecodeGives) {
  for (const ReductionFormat format : kFormats) {
    for (const std::size_t count : {1u, 255u, 256u, 1000u}) {
      const Bytes bytes = encoded(format, normal_floats(7, count, 2));
      const Floats before = normal_floats(8, count, 0), given = decoded(format, bytes, count);
      Floats sum = before;
      decode_add(format, bytes, sum);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[i], before[i] + given[i]);
    }
  }
}

// An unknown peer's bytes: every scale and every byte. Sanitizers look on.
TEST(ReductionFormat, AnyBytesAreDecoded) {
  for (std::uint32_t number = 0; number < 200; ++number) {
    for (const ReductionFormat format : kFormats) {
      const std::size_t count = 1 + number * 7;
      Bytes bytes(encoded_bytes(format, count));
      for (std::uint32_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(
            runtime::random_word({.seed = 9, .micro_batch = number}, i) >> 13);
      }
      const Floats once = decoded(format, bytes, count);
      Floats sum(count, 0.0f);
      decode_add(format, bytes, sum);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(sum[i] == once[i] || (std::isnan(sum[i]) && std::isnan(once[i])));
      }
    }
  }
  // -128, which encode() never writes, of the largest scale.
  Bytes bytes = encoded(ReductionFormat::kInt8, {Limits::max()});
  bytes.back() = std::byte{0x80};
  EXPECT_EQ(decoded(ReductionFormat::kInt8, bytes, 1)[0], -kInfinity);
}

TEST(ReductionFormatDeathTest, SpansThatDoNotFitBreakAnInvariant) {
  Bytes bytes(1016);
  Floats values(1000);
  EXPECT_DEATH(encode(ReductionFormat::kBf16, values, bytes), "room for other elements");
  EXPECT_DEATH(encode_baseline(ReductionFormat::kBf16, values, bytes), "room for other elements");
  EXPECT_DEATH(decode(ReductionFormat::kFp32, bytes, values), "the bytes of other elements");
  values.resize(999);
  EXPECT_DEATH(decode_add(ReductionFormat::kInt8, bytes, values), "the bytes of other elements");
}

}  // namespace
}  // namespace troupe::pipeline
