#include "model/rounded_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace troupe::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

runtime::RandomPosition position(std::uint32_t worker, std::uint32_t step) {
  return {.seed = 5, .micro_batch = worker, .iteration = step, .stream = 11};
}

std::vector<std::int16_t> rounded(const std::vector<float>& values, std::int16_t k,
                                  const runtime::RandomPosition& at) {
  std::vector<std::int16_t> sum(values.size(), 0);
  const QuantiseReport report = round_add(values, k, at, 0, sum);
  EXPECT_FALSE(report.flagged || report.non_finite);
  return sum;
}

// Between integers, of either sign, and in the outermost interval; in units of 2^-3.
const std::vector<float> kBetween{0.3f / 8,   -0.3f / 8,   0.75f / 8,  -12.9f / 8,
                                  126.4f / 8, -126.6f / 8, 0.001f / 8, -0.001f / 8,
                                  100.5f / 8, -64.25f / 8, 1e-12f / 8, 3.5f / 8};
constexpr std::uint32_t kDraws = 40'000;

// Hoeffding, "Probability inequalities for sums of bounded random variables", 1963: the mean of N
// independent numbers from an interval of length `range` is further than this from its expectation
// with a probability of at most 1e-9.
double bound_of_mean(double range) { return range * std::sqrt(std::log(2e9) / (2.0 * kDraws)); }

TEST(RoundedSum, IsTheNumberInTheMean) {
  std::vector<double> sums(kBetween.size()), squares(kBetween.size());
  for (std::uint32_t step = 0; step < kDraws; ++step) {
    const auto q = rounded(kBetween, 3, position(2, step));
    for (std::size_t i = 0; i < q.size(); ++i) {
      const double missed = q[i] - static_cast<double>(kBetween[i]) * 8;
      ASSERT_LT(std::abs(missed), 1.0) << "one of the two integers beside " << kBetween[i];
      sums[i] += missed;
      squares[i] += missed * missed;
    }
  }
  // To the nearest integer, 0.3 would miss by 0.3 at each draw.
  ASSERT_LT(bound_of_mean(1.0), 0.02);
  for (std::size_t i = 0; i < kBetween.size(); ++i) {
    const double x = static_cast<double>(kBetween[i]) * 8, part = x - std::floor(x);
    EXPECT_LT(std::abs(sums[i] / kDraws), bound_of_mean(1.0)) << x;
    EXPECT_NEAR(squares[i] / kDraws, part * (1 - part), bound_of_mean(1.0)) << x;
  }
}

// What one drops says nothing of what another does: products of the two lie between -1 and 1.
TEST(RoundedSum, RoundsElementsWorkersAndStepsApart) {
  const std::vector<float> halves(8, 0.5f);
  double of_block = 0, of_blocks = 0, of_workers = 0, of_steps = 0;
  for (std::uint32_t step = 0; step < kDraws; ++step) {
    const auto one = rounded(halves, 0, position(1, step));
    of_block += (one[2] - 0.5) * (one[3] - 0.5);
    of_blocks += (one[3] - 0.5) * (one[4] - 0.5);
    of_workers += (one[3] - 0.5) * (rounded(halves, 0, position(2, step))[3] - 0.5);
    of_steps += (one[3] - 0.5) * (rounded(halves, 0, position(1, step + 1))[3] - 0.5);
  }
  for (const double sum : {of_block, of_blocks, of_workers, of_steps}) {
    EXPECT_LT(std::abs(sum / kDraws), bound_of_mean(0.5));
  }
}

TEST(RoundedSum, KeepsIntegersAndDependsOnNothingElse) {
  const std::vector<float> whole{0.0f, -0.0f, 1.0f, -1.0f, 127.0f, -127.0f, 64.0f, -3.0f};
  const std::vector<std::int16_t> expected{0, 0, 1, -1, 127, -127, 64, -3};
  for (std::uint32_t step = 0; step < 200; ++step) {
    EXPECT_EQ(rounded(whole, 0, position(0, step)), expected);
  }
  EXPECT_EQ(rounded(kBetween, 3, position(3, 4)), rounded(kBetween, 3, position(3, 4)));
}

TEST(RoundedSum, IsTheSameInAnyPieces) {
  std::vector<float> values(101);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.37f * static_cast<float>(i) - 18.0f;
  const auto whole = rounded(values, 1, position(9, 9));
  for (const std::size_t cut : {1U, 2U, 3U, 4U, 50U, 99U}) {
    std::vector<std::int16_t> sum(values.size(), 0);
    const std::span<const float> all(values);
    const std::span<std::int16_t> into(sum);
    round_add(all.first(cut), 1, position(9, 9), 0, into.first(cut));
    round_add(all.subspan(cut), 1, position(9, 9), static_cast<std::int64_t>(cut),
              into.subspan(cut));
    EXPECT_EQ(sum, whole) << cut;
  }
}

TEST(RoundedSum, MeasuredScaleFitsForSureAndLeavesRoom) {
  for (const int e : {-148, -40, -3, 0, 5, 128}) {
    const std::int16_t k = rounded_scale_for(static_cast<std::int16_t>(e));
    const float least = std::ldexp(1.0f, e - 1);
    const float most =
        e == 128 ? std::numeric_limits<float>::max() : std::nextafter(std::ldexp(1.0f, e), 0.0f);
    std::vector<std::int16_t> sum(2, 0);
    const auto report = round_add(std::vector<float>{least, -most}, k, position(0, 0), 0, sum);
    EXPECT_FALSE(report.flagged) << e;
    EXPECT_EQ(report.max_exponent, e);
    EXPECT_EQ(sum[0], 32) << e;
    EXPECT_LE(std::abs(sum[1]), 64) << e;
  }
  std::vector<std::int16_t> sum(1, 0);
  const auto flagged = [&](float value) {
    return round_add(std::vector<float>{value}, 6, position(0, 0), 0, sum).flagged;
  };
  EXPECT_FALSE(flagged(127.0f / 64));
  EXPECT_FALSE(flagged(-127.0f / 64));
  EXPECT_TRUE(flagged(std::nextafter(127.0f / 64, 2.0f)));
  EXPECT_TRUE(flagged(std::nextafter(-127.0f / 64, -2.0f)));
}

TEST(RoundedSum, AddsNothingOfWhatDoesNotFitOrIsNoNumber) {
  std::vector<std::int16_t> sum(2, 7);
  const auto add = [&](float value, std::int16_t k) {
    const auto report = round_add(std::vector<float>{0.5f, value}, k, position(0, 0), 0, sum);
    EXPECT_EQ(sum, (std::vector<std::int16_t>{7, 7}));
    return report;
  };
  const QuantiseReport large = add(1000.0f, 0);
  EXPECT_TRUE(large.flagged);
  EXPECT_EQ(large.max_exponent, 10);
  EXPECT_TRUE(add(1.0f, kNoExponent).flagged);
  EXPECT_TRUE(add(std::nanf(""), 0).non_finite);
  EXPECT_TRUE(add(-kInfinity, 0).non_finite);
  const auto zeros = round_add(std::vector<float>(2, 0.0f), kNoExponent, position(0, 0), 0, sum);
  EXPECT_FALSE(zeros.flagged);
  EXPECT_EQ(zeros.max_exponent, kNoExponent);
}

TEST(RoundedSum, AsManyAsMayBeFit) {
  std::vector<std::int16_t> sum(2, 0);
  const std::vector<float> values{127.0f, -127.0f};
  for (std::uint32_t worker = 0; worker < kMostRounded; ++worker) {
    ASSERT_FALSE(round_add(values, 0, position(worker, 0), 0, sum).flagged);
  }
  EXPECT_EQ(sum, (std::vector<std::int16_t>{32512, -32512}));
}

TEST(RoundedSum, GivesTheMeanByItsScale) {
  const std::vector<std::int16_t> sum{96, -3, 0};
  std::vector<float> mean(3);
  restore_mean(sum, 5, 3, mean);
  EXPECT_EQ(mean, (std::vector<float>{1.0f, -1.0f / 32, 0.0f}));
  restore_mean(sum, kNoExponent, 3, mean);
  EXPECT_EQ(mean, std::vector<float>(3, 0.0f));
  std::vector<std::int16_t> both(3);
  add(sum, std::vector<std::int16_t>{4, -5, 6}, both);
  EXPECT_EQ(both, (std::vector<std::int16_t>{100, -8, 6}));
}

}  // namespace
}  // namespace troupe::model
