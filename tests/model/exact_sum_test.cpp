#include "model/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kLeastDenormal = std::numeric_limits<float>::denorm_min();
constexpr float kLargest = std::numeric_limits<float>::max();

// Floats of every sign, exponent (denormals too) and mantissa; none infinite or NaN.
std::vector<float> random_floats(std::size_t count, std::uint32_t stream,
                                 int lowest_exponent = -149, int highest_exponent = 127) {
  std::vector<float> values(count);
  const runtime::RandomPosition position{.seed = 7, .stream = stream};
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint32_t>(2 * i);
    const std::uint32_t word = runtime::random_word(position, index);
    const int exponent =
        lowest_exponent +
        static_cast<int>(runtime::random_word(position, index + 1) %
                         static_cast<std::uint32_t>(highest_exponent - lowest_exponent + 1));
    const float mantissa = 1.0f + static_cast<float>(word >> 9) * 0x1p-23f;
    values[i] = std::ldexp((word & 1) != 0 ? -mantissa : mantissa, exponent);
  }
  return values;
}

// 64 bits of mantissa: exact for every product of a float and a power of two.
std::int64_t reference_quantum(float value, int k) {
  return std::llrint(std::ldexp(static_cast<long double>(value), k));
}

std::int64_t limit(std::uint32_t micro_batches) { return (std::int64_t{1} << 62) / micro_batches; }

bool reference_flag(float value, int k, std::uint32_t micro_batches) {
  const long double scaled = std::fabs(std::ldexp(static_cast<long double>(value), k));
  return std::rint(scaled) > static_cast<long double>(limit(micro_batches));
}

struct SumInOrder {
  std::vector<std::int64_t> integers;
  std::int16_t max_exponent = kNoExponent;
  bool flagged = false;
};

// The numbers' integers added in the order of `order`.
SumInOrder sum_in_order(const std::vector<std::vector<float>>& numbers,
                        const std::vector<int>& order, std::int16_t k) {
  SumInOrder sum{std::vector<std::int64_t>(numbers[0].size(), 0)};
  for (const int index : order) {
    const auto report =
        quantise_add(numbers[index], k, static_cast<std::uint32_t>(numbers.size()), sum.integers);
    sum.max_exponent = std::max(sum.max_exponent, report.max_exponent);
    sum.flagged |= report.flagged;
  }
  return sum;
}

TEST(ExactSum, IntegersMatchLongDoubleForEveryExponentAndScale) {
  const std::vector<float> values = random_floats(3000, 1);
  int compared = 0;
  for (const int k : {-32767, -1100, -900, -200, -120, -64, -3,  0,    1,    20,   51,   62,
                      111,    149,   170,  198,  211,  250, 901, 1023, 1024, 2000, 32767}) {
    for (const float value : values) {
      std::int64_t sum = 5;
      const auto report =
          quantise_add({&value, 1}, static_cast<std::int16_t>(k), 4, std::span(&sum, 1));
      ASSERT_EQ(report.flagged, reference_flag(value, k, 4)) << value << " x 2^" << k;
      if (report.flagged) continue;
      ASSERT_EQ(sum, 5 + reference_quantum(value, k)) << value << " x 2^" << k;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20000);
}

TEST(ExactSum, VectorOfManyBlocksGivesTheIntegersOfItsElements) {
  // Near 2^51 both ways of rounding are taken, block by block.
  for (const int highest : {-1, 0, 1, 5, 9}) {
    const std::vector<float> values = random_floats(5000, 2, -60, highest);
    std::vector<std::int64_t> sum(values.size(), -3);
    const auto report = quantise_add(values, 50, 4, sum);
    ASSERT_FALSE(report.flagged);
    EXPECT_EQ(report.max_exponent, highest + 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(sum[i], -3 + reference_quantum(values[i], 50)) << i;
    }
  }
}

TEST(ExactSum, HalvesRoundToEven) {
  const std::vector<float> values{0.5f, 1.5f, 2.5f, 3.5f, -0.5f, -1.5f, -2.5f, 0.49999997f, 0.75f};
  const std::vector<std::int64_t> expected{0, 2, 2, 4, 0, -2, -2, 0, 1};
  std::vector<std::int64_t> sum(values.size(), 0);
  quantise_add(values, 0, 1, sum);
  EXPECT_EQ(sum, expected);
}

TEST(ExactSum, ExponentIsTheSmallestPowerOfTwoAboveTheLargestElement) {
  const std::vector<std::pair<float, int>> cases{{1.0f, 1},
                                                 {-1.0f, 1},
                                                 {0.99999994f, 0},
                                                 {0.5f, 0},
                                                 {3.0f, 2},
                                                 {kLargest, 128},
                                                 {-kLargest, 128},
                                                 {0x1p-126f, -125},
                                                 {0x1p-127f, -126},
                                                 {0x1.8p-127f, -126},
                                                 {0x1p-148f, -147},
                                                 {kLeastDenormal, -148},
                                                 {-kLeastDenormal, -148}};
  for (const auto& [value, exponent] : cases) {
    const std::vector<float> values{0.0f, value, -0.0f, value * 0.5f};
    std::vector<std::int64_t> sum(values.size(), 0);
    EXPECT_EQ(quantise_add(values, 0, 1, sum).max_exponent, exponent) << value;
  }
  const std::vector<float> zeros{0.0f, -0.0f};
  std::vector<std::int64_t> sum(2, 0);
  EXPECT_EQ(quantise_add(zeros, 0, 1, sum).max_exponent, kNoExponent);
}

TEST(ExactSum, FirstStepOnlyMeasures) {
  const std::vector<float> values{0.0f, 3.0f, -0.125f};
  std::vector<std::int64_t> sum(3, 0);
  const auto report = quantise_add(values, kNoExponent, 4, sum);
  EXPECT_TRUE(report.flagged);
  EXPECT_EQ(report.max_exponent, 2);
  EXPECT_FALSE(report.non_finite);

  const std::vector<float> zeros(3, 0.0f);
  std::fill(sum.begin(), sum.end(), 0);
  EXPECT_FALSE(quantise_add(zeros, kNoExponent, 4, sum).flagged);
  EXPECT_EQ(sum, std::vector<std::int64_t>(3, 0));
  std::vector<float> mean(3, 1.0f);
  restore_mean(sum, kNoExponent, 4, mean);
  EXPECT_EQ(mean, zeros);
}

TEST(ExactSum, FlagRaisedExactlyBeyondTheLimitAlsoWhenMIsNoPowerOfTwo) {
  for (const std::uint32_t m : {1u, 2u, 3u, 5u, 7u, 12u, 100u, 4095u, 1u << 20}) {
    const long double exact = static_cast<long double>(limit(m));
    float inside = static_cast<float>(exact);
    if (static_cast<long double>(inside) > exact) inside = std::nextafter(inside, 0.0f);
    const float outside = std::nextafter(inside, kInfinity);
    std::int64_t sum = 0;
    EXPECT_FALSE(quantise_add({&inside, 1}, 0, m, std::span(&sum, 1)).flagged) << m;
    EXPECT_EQ(sum, static_cast<std::int64_t>(inside)) << m;
    EXPECT_TRUE(quantise_add({&outside, 1}, 0, m, std::span(&sum, 1)).flagged) << m;
    const float negative = -outside;
    EXPECT_TRUE(quantise_add({&negative, 1}, 0, m, std::span(&sum, 1)).flagged) << m;
  }
  const float largest = kLargest;
  std::int64_t sum = 0;
  EXPECT_TRUE(quantise_add({&largest, 1}, 32767, 1, std::span(&sum, 1)).flagged);
}

TEST(ExactSum, FlagDoesNotLookAtPartialSums) {
  // Each number is within 2^62 / 3; two of a sign together are not, whatever comes third.
  const std::vector<std::vector<float>> numbers{{0x1.4p60f}, {0x1.2p60f}, {-0x1.5p60f}};
  std::vector<int> order{0, 1, 2};
  do {
    const SumInOrder sum = sum_in_order(numbers, order, 0);
    EXPECT_FALSE(sum.flagged);
    EXPECT_EQ(sum.integers[0], std::int64_t{0x11} << 56);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ExactSum, NaNAndInfinityAreFoundWhereverTheyStand) {
  for (const float bad : {kNaN, -kNaN, kInfinity, -kInfinity}) {
    for (const std::size_t index : {0u, 1u, 1023u, 1024u, 2999u}) {
      std::vector<float> values = random_floats(3000, 3, -10, 10);
      values[index] = bad;
      std::vector<std::int64_t> sum(values.size(), 0);
      EXPECT_TRUE(quantise_add(values, 20, 4, sum).non_finite);
      EXPECT_TRUE(quantise_add(values, kNoExponent, 4, sum).non_finite);
    }
  }
}

TEST(ExactSum, EveryPermutationAndGroupingOfMicroBatchesGivesTheSameSum) {
  // Cancellation over a huge range: float sums of these differ by order.
  std::vector<std::vector<float>> numbers(5);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = random_floats(64, 10 + static_cast<std::uint32_t>(i), -20, 20);
  }
  for (std::size_t j = 0; j < 64; j += 4) {
    numbers[1][j] = -numbers[0][j];
    numbers[3][j] = 0x1p-149f;
  }
  std::vector<int> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  const std::int16_t k = scale_for(21, 5);
  const SumInOrder first = sum_in_order(numbers, order, k);
  ASSERT_FALSE(first.flagged);
  int float_sums_that_differ = 0;
  do {
    EXPECT_EQ(sum_in_order(numbers, order, k).integers, first.integers);
    // Grouped: the first two on one member, the rest on another.
    SumInOrder left = sum_in_order(numbers, {order[0], order[1]}, k);
    add(sum_in_order(numbers, {order[2], order[3], order[4]}, k).integers, left.integers);
    EXPECT_EQ(left.integers, first.integers);
    float forward = 0.0f, reference = 0.0f;
    for (const int i : order) forward += numbers[i][1];
    for (std::size_t i = 0; i < numbers.size(); ++i) reference += numbers[i][1];
    float_sums_that_differ += forward != reference ? 1 : 0;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_GT(float_sums_that_differ, 0) << "the case is too easy to prove anything";
}

TEST(ExactSum, ScaleMeasuredOnceIsNeverFlaggedAndNeverOverflows) {
  for (const std::uint32_t m : {1u, 2u, 3u, 4u, 5u, 7u, 16u, 100u, 1000u, 1u << 31, UINT32_MAX}) {
    for (int exponent = -148; exponent <= 128; ++exponent) {
      // The largest float below 2^e.
      const float value =
          exponent == 128 ? kLargest : std::nextafter(std::ldexp(1.0f, exponent), 0.0f);
      const std::int16_t k = scale_for(static_cast<std::int16_t>(exponent), m);
      std::int64_t sum = 0;
      const auto report = quantise_add({&value, 1}, k, m, std::span(&sum, 1));
      ASSERT_FALSE(report.flagged) << m << " " << exponent;
      ASSERT_LE(sum, limit(m)) << m << " " << exponent;
    }
  }
}

TEST(ExactSum, OverflowOfTheScaleIsMendedByOneRetry) {
  const std::vector<float> small = random_floats(100, 20, -30, -20);
  const std::vector<float> grown = random_floats(100, 21, -30, 3);
  std::vector<std::int64_t> sum(100, 0);
  const std::int16_t k = scale_for(quantise_add(small, kNoExponent, 4, sum).max_exponent, 4);
  EXPECT_FALSE(quantise_add(small, k, 4, sum).flagged);
  const auto attempt_0 = quantise_add(grown, k, 4, sum);
  ASSERT_TRUE(attempt_0.flagged);
  std::fill(sum.begin(), sum.end(), 0);
  const std::int16_t retry = scale_for(attempt_0.max_exponent, 4);
  EXPECT_FALSE(quantise_add(grown, retry, 4, sum).flagged);
  for (std::size_t i = 0; i < grown.size(); ++i) {
    EXPECT_EQ(sum[i], reference_quantum(grown[i], retry));
  }
}

TEST(ExactSum, MeanKeepsTheBitsTheScalePromises) {
  for (const std::uint32_t m : {1u, 3u, 8u}) {
    const std::vector<float> values = random_floats(500, 30, -40, -1);
    const std::int16_t k = scale_for(0, m);
    std::vector<std::int64_t> sum(values.size(), 0);
    for (std::uint32_t i = 0; i < m; ++i) quantise_add(values, k, m, sum);
    std::vector<float> mean(values.size());
    restore_mean(sum, k, m, mean);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double half_unit = std::ldexp(0.5, -k);
      EXPECT_NEAR(mean[i], values[i], half_unit + std::fabs(values[i]) * 0x1p-24) << m;
      // Up to 2^23 units every bit of the float is kept.
      if (std::fabs(values[i]) >= std::ldexp(1.0, 23 - k)) {
        EXPECT_EQ(mean[i], values[i]) << m;
      }
    }
  }
}

TEST(ExactSum, MeanIsTheDocumentedFormula) {
  std::vector<std::int64_t> sums{
      0, 1, -1, INT64_MAX, INT64_MIN, (1LL << 53) + 1, -(1LL << 53) - 1, (1LL << 32) - 1};
  const runtime::RandomPosition position{.seed = 9, .stream = 40};
  for (std::uint32_t i = 0; i < 2001; ++i) {
    const auto bits = (std::uint64_t{runtime::random_word(position, 2 * i)} << 32) |
                      runtime::random_word(position, 2 * i + 1);
    sums.push_back(static_cast<std::int64_t>(bits) >> (i % 63));
  }
  std::vector<float> means(sums.size());
  for (const int k : {-110, -5, 0, 13, 48, 110, 198}) {
    for (const std::uint32_t m : {1u, 3u, 64u}) {
      restore_mean(sums, static_cast<std::int16_t>(k), m, means);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const double expected = std::ldexp(static_cast<double>(sums[i]), -k) / m;
        ASSERT_EQ(restored_mean(sums[i], static_cast<std::int16_t>(k), m), expected);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(means[i]),
                  std::bit_cast<std::uint32_t>(static_cast<float>(expected)))
            << sums[i] << " x 2^" << -k << " / " << m;
      }
    }
  }
}

TEST(ExactSum, MeanOfExtremeScalesIsZeroOrInfinite) {
  const std::vector<std::int64_t> sums{1, -1, INT64_MAX};
  for (const std::int16_t k : {std::int16_t{1000}, std::int16_t{32767}}) {
    std::vector<float> mean(3, 1.0f);
    restore_mean(sums, k, 3, mean);
    EXPECT_EQ(mean, std::vector<float>({0.0f, -0.0f, 0.0f}));
  }
  std::vector<float> mean(3);
  restore_mean(sums, -32767, 3, mean);
  EXPECT_EQ(mean, std::vector<float>({kInfinity, -kInfinity, kInfinity}));
}

TEST(ExactSum, ScaleRoundsTheLogarithmOfMUp) {
  EXPECT_EQ(scale_for(0, 1), 50);
  EXPECT_EQ(scale_for(0, 2), 49);
  EXPECT_EQ(scale_for(0, 3), 48);
  EXPECT_EQ(scale_for(0, 4), 48);
  EXPECT_EQ(scale_for(0, 5), 47);
  EXPECT_EQ(scale_for(-148, 1), 198);
  EXPECT_EQ(scale_for(128, 1u << 31), -109);
  EXPECT_EQ(scale_for(128, UINT32_MAX), -110);
}

TEST(ExactSum, EmptyTensorsAreFine) {
  const auto report = quantise_add({}, 3, 4, {});
  EXPECT_EQ(report.max_exponent, kNoExponent);
  EXPECT_FALSE(report.flagged);
}

TEST(ExactSumDeathTest, SizesThatDifferBreakAnInvariant) {
  const std::vector<float> values(3, 1.0f);
  std::vector<std::int64_t> sum(2, 0);
  EXPECT_DEATH(quantise_add(values, 0, 1, sum), "values.size\\(\\) == sum.size\\(\\)");
}

}  // namespace
}  // namespace troupe::model
