// Numbers of eight bits, and that their products are the ones bfloat16.h defines on every kind of
// vector.

#include "model/backend/cpu/bfloat16.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/backend/cpu/bfloat16_planes.h"
#include "model/backend/cpu/plane_dots.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/float_environment.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

using cpu::Bfloat16;
using cpu::Bfloat16Pair;
using cpu::kPositionLanes;
using cpu::to_bfloat16;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Bfloat16, RoundsToTheNearestAndOfTwoToTheEvenOne) {
  EXPECT_EQ(to_bfloat16(float_of(0x3F808000)).bits, 0x3F80);  // a tie
  EXPECT_EQ(to_bfloat16(float_of(0x3F818000)).bits, 0x3F82);  // a tie
  EXPECT_EQ(to_bfloat16(float_of(0x3F808001)).bits, 0x3F81);
  EXPECT_EQ(to_bfloat16(float_of(0x3F80FFFF)).bits, 0x3F81);
  EXPECT_EQ(to_bfloat16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(float_of(0x00018000)).bits, 0x0002);  // subnormal
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::infinity()).bits, 0xFF80);
  for (const std::uint32_t nan : {0x7F800001u, 0xFFFFFFFFu, 0x7FC00000u}) {
    EXPECT_TRUE(std::isnan(to_float(to_bfloat16(float_of(nan))))) << nan;
  }
}

float product(float a, float b) {  // behind the compiler's back
  volatile float left = a, right = b;
  return left * right;
}

TEST(FloatEnvironment, SubnormalsAreFlushedAsLongAsItIsAskedFor) {
  set_float_environment();
  EXPECT_NE(product(0x1p-100f, 0x1p-40f), 0.0f);
  {
    const FlushedSubnormals outer;
    {
      const FlushedSubnormals inner;
      EXPECT_EQ(product(0x1p-100f, 0x1p-40f), 0.0f);
    }
    EXPECT_EQ(product(0x1p-100f, 0x1p-40f), 0.0f);
    EXPECT_EQ(product(0x1p-130f, 0x1p20f), 0.0f);
  }
  EXPECT_NE(product(0x1p-100f, 0x1p-40f), 0.0f);
}

// The definition, a fused multiply-add at a time.
float added(Bfloat16 a, Bfloat16 b, float sum) {
  const auto flushed = [](float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
  };
  return flushed(std::fma(flushed(to_float(a)), flushed(to_float(b)), flushed(sum)));
}
float added(Bfloat16Pair a, Bfloat16Pair b, float sum) {
  return added(a.first, b.first, added(a.second, b.second, sum));
}

// Around 1, around the root of the smallest normal number, subnormal, large.
Bfloat16 some_number(Draw& draw) {
  const double exponents[] = {0.0, -63.0, -64.0, -76.0, -130.0, 60.0};
  const double exponent = exponents[draw.between(0, 5)] + static_cast<double>(draw.between(-2, 2));
  return to_bfloat16(static_cast<float>((2.0 * draw.uniform() - 1.0) * std::exp2(exponent)));
}

std::vector<Bfloat16> some_numbers(Draw& draw, std::int64_t count) {
  std::vector<Bfloat16> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(some_number(draw));
  return numbers;
}

std::vector<Bfloat16Pair> some_pairs(Draw& draw, std::int64_t count) {
  std::vector<Bfloat16Pair> pairs;
  for (std::int64_t i = 0; i < count; ++i) pairs.push_back({some_number(draw), some_number(draw)});
  return pairs;
}

// For hosts that have less than this one, and for this one.
constexpr std::int64_t kTargets[] = {HWY_AVX2, HWY_AVX3, 0};

class OfEveryVector : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
    if (GetParam() != 0 && (hwy::SupportedTargets() & GetParam()) == 0) {
      GTEST_SKIP() << "this host has no vectors for it";
    }
    set_float_environment();
  }
};

TEST_P(OfEveryVector, SumsOfPairsAreTheDefinition) {
  constexpr std::int64_t kPairs = 3, kOutputs = 5;
  const OnlyTargets only(GetParam());
  Draw draw(1);
  for (int round = 0; round < 300; ++round) {
    const auto values = some_pairs(draw, kPairs * kPositionLanes);
    const auto weights = some_pairs(draw, kPairs * kOutputs);
    std::vector<float> sums(kOutputs * kPositionLanes, NAN);
    const Bfloat16Pair* tap = values.data();
    cpu::multiply_planes(cpu::PlaneProduct<Bfloat16Pair>{.taps = {&tap, 1},
                                                         .channels = kPairs,
                                                         .channel_stride = kPositionLanes,
                                                         .weights = weights.data(),
                                                         .outputs = kOutputs,
                                                         .weights_stride = kOutputs,
                                                         .positions = kPositionLanes,
                                                         .sums = sums.data(),
                                                         .sums_stride = kPositionLanes});
    for (std::size_t o = 0; o < kOutputs; ++o) {
      for (std::size_t q = 0; q < kPositionLanes; ++q) {
        float sum = 0.0f;
        for (std::size_t pair = 0; pair < kPairs; ++pair) {
          sum = added(values[pair * kPositionLanes + q], weights[pair * kOutputs + o], sum);
        }
        ASSERT_EQ(bits_of(sums[o * kPositionLanes + q]), bits_of(sum)) << round << " " << o;
      }
    }
  }
}

// Sums over lanes are as the thread has subnormals: not flushed.
float sum_of_dots(const std::vector<Bfloat16>& left, const std::vector<Bfloat16>& right) {
  float lanes[kPositionLanes] = {};
  for (std::size_t i = 0; i < left.size() / 2; ++i) {
    float& lane = lanes[i % kPositionLanes];
    lane = added(Bfloat16Pair{left[2 * i], left[2 * i + 1]},
                 Bfloat16Pair{right[2 * i], right[2 * i + 1]}, lane);
  }
  float four[4];
  for (std::size_t i = 0; i < 4; ++i) {
    four[i] = (lanes[i] + lanes[i + 8]) + (lanes[i + 4] + lanes[i + 12]);
  }
  return (four[0] + four[2]) + (four[1] + four[3]);
}

float dots_of(const std::vector<Bfloat16>& left, const std::vector<Bfloat16>& right) {
  const Bfloat16 *from_left = left.data(), *from_right = right.data();
  const std::int64_t row = 0;
  float sum = 0.0f;
  cpu::add_plane_dots(cpu::PlaneDots<Bfloat16>{.left = {&from_left, 1},
                                               .right = {&from_right, 1},
                                               .rows = {&row, 1},
                                               .outputs = 1,
                                               .right_stride = 0,
                                               .positions = static_cast<std::int64_t>(left.size()),
                                               .sums = &sum,
                                               .sums_stride = 1});
  return sum;
}

TEST_P(OfEveryVector, SumsOverPositionsAreTheDefinition) {
  const OnlyTargets only(GetParam());
  Draw draw(2);
  for (int round = 0; round < 300; ++round) {
    const auto left = some_numbers(draw, 4 * kPositionLanes);
    const auto right = some_numbers(draw, 4 * kPositionLanes);
    ASSERT_EQ(bits_of(dots_of(left, right)), bits_of(sum_of_dots(left, right))) << round;
  }
}

// For two lanes, neither of which is subnormal.
TEST_P(OfEveryVector, SumOverLanesMayBeSubnormal) {
  const OnlyTargets only(GetParam());
  std::vector<Bfloat16> left(2 * kPositionLanes), right = left;
  left[0] = to_bfloat16(0x1.8p-60f);
  left[16] = to_bfloat16(0x1.4p-60f);
  right[0] = to_bfloat16(0x1p-66f);
  right[16] = to_bfloat16(-0x1p-66f);
  EXPECT_EQ(dots_of(left, right), 0x1p-128f);
}

TEST_P(OfEveryVector, PlanesAreRoundedAsNumbersAreAndAnOddChannelHasAZeroPartner) {
  constexpr std::int64_t kChannels = 3;
  const OnlyTargets only(GetParam());
  Draw draw(3);
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < kChannels * kPositionLanes; ++i) {
    numbers.push_back(float_of(static_cast<std::uint32_t>(draw.between(0, 0xFFFFFFFF))));
  }
  numbers[0] = float_of(0x7F800001);  // NaN that is only seen in the lower half
  numbers[1] = std::numeric_limits<float>::infinity();
  numbers[2] = float_of(0x3F808000);
  std::vector<Bfloat16Pair> pairs(2 * kPositionLanes);
  std::vector<Bfloat16> values(numbers.size());
  const cpu::PlaneSizes sizes{.tiles = false, .channels = kChannels, .plane = kPositionLanes};
  cpu::inputs_to(sizes, numbers.data(), pairs.data());
  cpu::inputs_to(sizes, numbers.data(), values.data());
  for (std::size_t i = 0; i < kPositionLanes; ++i) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const std::size_t at = channel * kPositionLanes + i;
      const Bfloat16Pair& pair = pairs[channel / 2 * kPositionLanes + i];
      EXPECT_EQ((channel % 2 == 0 ? pair.first : pair.second).bits, to_bfloat16(numbers[at]).bits);
      EXPECT_EQ(values[at].bits, to_bfloat16(numbers[at]).bits);
    }
    EXPECT_EQ(pairs[kPositionLanes + i].second.bits, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Bfloat16, OfEveryVector, testing::ValuesIn(kTargets),
                         [](const auto& test) {
                           return test.param == 0          ? "All"
                                  : test.param == HWY_AVX2 ? "Avx2"
                                                           : "Avx512";
                         });

TEST(Bfloat16, HostsThatHaveTheInstructionUseIt) {
  // What Highway wants besides it.
  if ((hwy::SupportedTargets() & (HWY_AVX3_DL | (HWY_AVX3_DL - 1))) == 0) {
    GTEST_SKIP() << "this host has no vectors for it";
  }
  EXPECT_EQ(cpu::multiplies_pairs_at_once(), __builtin_cpu_supports("avx512bf16") != 0);
}

}  // namespace
}  // namespace troupe::model
