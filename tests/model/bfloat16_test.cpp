// Numbers of eight bits, and that their products are the ones bfloat16.h defines on every kind of
// vector; and dense layers, which are made of them.

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
using cpu::RoundedFloat;
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

// Each pair's second number and then its first one, in planes of so many.
std::vector<RoundedFloat> as_planes(const std::vector<Bfloat16Pair>& pairs, std::size_t plane) {
  std::vector<RoundedFloat> planes(2 * pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::size_t at = i / plane * 2 * plane + i % plane;
    planes[at].value = to_float(pairs[i].second);
    planes[at + plane].value = to_float(pairs[i].first);
  }
  return planes;
}

// For hosts that have less than this one, and for this one.
constexpr std::int64_t kTargets[] = {HWY_AVX2, HWY_AVX3, 0};
std::string name_of_target(std::int64_t target) {
  return target == 0 ? "All" : target == HWY_AVX2 ? "Avx2" : "Avx512";
}

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
    const auto value_planes = as_planes(values, kPositionLanes);
    const auto weight_planes = as_planes(weights, kOutputs);
    std::vector<float> sums_of_planes(sums.size(), NAN);
    const RoundedFloat* plane = value_planes.data();
    cpu::multiply_planes(cpu::PlaneProduct<RoundedFloat>{.taps = {&plane, 1},
                                                         .channels = 2 * kPairs,
                                                         .channel_stride = kPositionLanes,
                                                         .weights = weight_planes.data(),
                                                         .outputs = kOutputs,
                                                         .weights_stride = kOutputs,
                                                         .positions = kPositionLanes,
                                                         .sums = sums_of_planes.data(),
                                                         .sums_stride = kPositionLanes});
    for (std::size_t o = 0; o < kOutputs; ++o) {
      for (std::size_t q = 0; q < kPositionLanes; ++q) {
        float sum = 0.0f;
        for (std::size_t pair = 0; pair < kPairs; ++pair) {
          sum = added(values[pair * kPositionLanes + q], weights[pair * kOutputs + o], sum);
        }
        ASSERT_EQ(bits_of(sums[o * kPositionLanes + q]), bits_of(sum)) << round << " " << o;
        ASSERT_EQ(bits_of(sums_of_planes[o * kPositionLanes + q]), bits_of(sum))
            << round << " " << o;
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
  const cpu::DotRow row;
  float sum = 0.0f;
  cpu::add_plane_dots(cpu::PlaneDots<Bfloat16>{.left = {&from_left, 1},
                                               .right = {&from_right, 1},
                                               .rows = {&row, 1},
                                               .outputs = 1,
                                               .right_stride = 0,
                                               .positions = static_cast<std::int64_t>(left.size()),
                                               .sums = &sum});
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
  std::vector<Bfloat16Pair> pairs(2 * kPositionLanes, {{0x1234}, {0x1234}});
  std::vector<RoundedFloat> planes(2 * pairs.size(), {1.0f});
  std::vector<Bfloat16> values(numbers.size());
  const cpu::PlaneSizes sizes{.tiles = false, .channels = kChannels, .plane = kPositionLanes};
  cpu::inputs_to(sizes, numbers.data(), pairs.data());
  cpu::inputs_to(sizes, numbers.data(), planes.data());
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
  const auto judge = as_planes(pairs, kPositionLanes);
  for (std::size_t i = 0; i < judge.size(); ++i) {
    EXPECT_EQ(bits_of(planes[i].value), bits_of(judge[i].value)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Bfloat16, OfEveryVector, testing::ValuesIn(kTargets),
                         [](const auto& test) { return name_of_target(test.param); });

TEST(Bfloat16, HostsThatHaveTheInstructionsKnowIt) {
  // What Highway wants besides it.
  if ((hwy::SupportedTargets() & (HWY_AVX3_DL | (HWY_AVX3_DL - 1))) == 0) {
    GTEST_SKIP() << "this host has no vectors for it";
  }
  EXPECT_EQ(cpu::has_bfloat16_instructions(), __builtin_cpu_supports("avx512bf16") != 0);
}

// The sum of a(i) b(i), of which the second of a pair is added first.
template <class A, class B>
float sum_of_pairs(std::int64_t count, const A& a, const B& b) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < count; i += 2) {
    const bool two = i + 1 < count;
    sum = added(Bfloat16Pair{to_bfloat16(a(i)), to_bfloat16(two ? a(i + 1) : 0.0F)},
                Bfloat16Pair{to_bfloat16(b(i)), to_bfloat16(two ? b(i + 1) : 0.0F)}, sum);
  }
  return sum;
}

// Element (row, column) of a matrix with so many columns.
auto matrix(const std::vector<float>& values, std::int64_t columns) {
  return [&values, columns](std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  };
}

std::vector<float> y_of(const DenseForward& d, const Operands<float>& given) {
  const auto x = matrix(given[0], d.inputs), kernel = matrix(given[1], d.units);
  std::vector<float> y;
  for (std::int64_t n = 0; n < d.batch; ++n) {
    for (std::int64_t u = 0; u < d.units; ++u) {
      const float sum = sum_of_pairs(
          d.inputs, [&](auto i) { return x(n, i); }, [&](auto i) { return kernel(i, u); });
      y.push_back(d.bias ? sum + given[2][static_cast<std::size_t>(u)] : sum);
    }
  }
  return y;
}

std::vector<float> dx_of(const DenseBackwardInput& d, const Operands<float>& given) {
  const auto dy = matrix(given[0], d.units), kernel = matrix(given[1], d.units);
  std::vector<float> dx;
  for (std::int64_t n = 0; n < d.batch; ++n) {
    for (std::int64_t i = 0; i < d.inputs; ++i) {
      dx.push_back(sum_of_pairs(
          d.units, [&](auto u) { return dy(n, u); }, [&](auto u) { return kernel(i, u); }));
    }
  }
  return dx;
}

std::vector<float> dkernel_of(const DenseBackwardParameters& d, const Operands<float>& given) {
  const auto x = matrix(given[0], d.inputs), dy = matrix(given[1], d.units);
  std::vector<float> dkernel;
  for (std::int64_t i = 0; i < d.inputs; ++i) {
    for (std::int64_t u = 0; u < d.units; ++u) {
      dkernel.push_back(sum_of_pairs(
          d.batch, [&](auto n) { return x(n, i); }, [&](auto n) { return dy(n, u); }));
    }
  }
  return dkernel;
}

// Sizes that fill blocks and vectors and that do not, odd ones.
struct Sizes {
  std::int64_t batch, inputs, units;
};
constexpr Sizes kLarge[] = {{1, 16, 16}, {2, 17, 32}, {3, 33, 112}, {17, 40, 64}, {32, 19, 208}};

class LargeDense : public OfEveryVector {
 protected:
  Operands<float> result_of(const Operation& operation, Operands<float> operands) const {
    const OnlyTargets only(GetParam());
    run_operation(**make_portable_backend(Precision::kBf16), operation, operands);
    return operands;
  }
};

TEST_P(LargeDense, IsItsDefinitionInEveryDirection) {
  Draw draw(1);
  for (const Sizes& s : kLarge) {
    for (const bool bias : {false, true}) {
      const DenseForward forward{s.batch, s.inputs, s.units, bias};
      const DenseBackwardInput input{s.batch, s.inputs, s.units};
      const DenseBackwardParameters parameters{s.batch, s.inputs, s.units, bias};
      // A factor brings some sums near the subnormal numbers.
      for (const float factor : {1.0F, 0x1p-62F}) {
        const auto given = [&](const Operation& operation) {
          Operands<float> operands = converted<float>(random_operands(operation, draw));
          for (float& value : operands[0]) value *= factor;
          for (float& value : operands[1]) value *= factor;
          return operands;
        };
        Operands<float> operands = given(forward);
        EXPECT_TRUE(same_bits({result_of(forward, operands)[3]}, {y_of(forward, operands)}))
            << s.batch << ' ' << s.inputs << ' ' << s.units;
        operands = given(input);
        EXPECT_TRUE(same_bits({result_of(input, operands)[2]}, {dx_of(input, operands)}))
            << s.batch << ' ' << s.inputs << ' ' << s.units;
        operands = given(parameters);
        EXPECT_TRUE(
            same_bits({result_of(parameters, operands)[2]}, {dkernel_of(parameters, operands)}))
            << s.batch << ' ' << s.inputs << ' ' << s.units;
      }
    }
  }
}

// The result of the reference in float, which rounds nothing but sums.
TEST_P(LargeDense, IsNearFp32AndHasItsGradientOfTheBias) {
  const auto reference = make_reference_backend(DataType::kFloat32);
  Draw draw(2);
  for (const Sizes& s : kLarge) {
    for (const Operation& operation :
         {Operation(DenseForward{s.batch, s.inputs, s.units, true}),
          Operation(DenseBackwardInput{s.batch, s.inputs, s.units}),
          Operation(DenseBackwardParameters{s.batch, s.inputs, s.units, true})}) {
      Operands<float> want = converted<float>(random_operands(operation, draw));
      const Operands<float> found = result_of(operation, want);
      run_operation(*reference, operation, want);
      for (std::size_t k = 0; k < want.size(); ++k) {
        for (std::size_t i = 0; i < want[k].size(); ++i) {
          // Two roundings of 2^-9, of products below 1 that add up at random.
          ASSERT_NEAR(found[k][i], want[k][i], 0.01 * std::sqrt(s.batch + s.inputs + s.units))
              << operation_name(operation);
        }
      }
      if (std::holds_alternative<DenseBackwardParameters>(operation)) {
        EXPECT_TRUE(same_bits({found[3]}, {want[3]}));
        EXPECT_FALSE(same_bits({found[2]}, {want[2]}));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Bfloat16, LargeDense, testing::ValuesIn(kTargets),
                         [](const auto& test) { return name_of_target(test.param); });

TEST(SmallDense, StaysFloatWithBf16) {
  const auto bf16 = make_portable_backend(Precision::kBf16), fp32 = make_portable_backend();
  if (!fp32.ok()) GTEST_SKIP() << fp32.error().message;
  (*bf16)->prepare_thread();
  Draw draw(3);
  for (const Sizes& s : {Sizes{5, 15, 32}, Sizes{5, 300, 1}, Sizes{5, 32, 17}}) {
    for (const Operation& operation :
         {Operation(DenseForward{s.batch, s.inputs, s.units, true}),
          Operation(DenseBackwardInput{s.batch, s.inputs, s.units}),
          Operation(DenseBackwardParameters{s.batch, s.inputs, s.units, true})}) {
      Operands<float> found = converted<float>(random_operands(operation, draw)), want = found;
      run_operation(**bf16, operation, found);
      run_operation(**fp32, operation, want);
      EXPECT_TRUE(same_bits(found, want)) << operation_name(operation) << ' ' << s.inputs;
    }
  }
}

}  // namespace
}  // namespace troupe::model
