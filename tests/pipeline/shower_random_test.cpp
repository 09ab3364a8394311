#include "pipeline/data/shower_random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments moments(int count, const std::function<double()>& draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / count;
  return {mean, squares / count - mean * mean};
}

TEST(ShowerRandom, LogGammaMatchesTheLibrary) {
  for (double x = 0.01; x < 3000; x *= 1.07) {
    const double want = std::lgamma(x);
    EXPECT_NEAR(log_gamma(x), want, 1e-12 * std::max(1.0, std::fabs(want))) << x;
  }
}

TEST(ShowerRandom, WordsAreThePhiloxBlocksOfTheEvent) {
  ShowerRandom random(42, 0x1'0000'0007, ShowerStream::kSpots);
  for (std::uint32_t block = 0; block < 3 * ShowerRandom::kBlocks; ++block) {
    const runtime::PhiloxBlock want = runtime::philox({block, 7, 1, 0xFF000002u}, 42);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(random.word(), want[i]);
  }
}

TEST(ShowerRandom, PoissonHasTheRightMeanAndVariance) {
  for (const double mean : {0.05, 1.0, 9.9, 10.1, 30.0, 700.0}) {
    ShowerRandom random(3, 1, ShowerStream::kProfile);
    constexpr int kDraws = 40000;
    const Moments got = moments(kDraws, [&] { return random.poisson(mean); });
    EXPECT_NEAR(got.mean, mean, 4 * std::sqrt(mean / kDraws)) << mean;
    EXPECT_NEAR(got.variance, mean, 0.05 * mean + 0.01) << mean;
  }
}

TEST(ShowerRandom, PoissonFollowsItsProbabilitiesOnBothSidesOfTheSwitch) {
  for (const double mean : {4.0, 14.0}) {
    ShowerRandom random(5, 1, ShowerStream::kProfile);
    constexpr int kDraws = 60000;
    std::vector<int> seen(60, 0);
    for (int i = 0; i < kDraws; ++i) ++seen[std::min<std::size_t>(59, random.poisson(mean))];
    double chi2 = 0;
    int bins = 0;
    for (int k = 0; k < 59; ++k) {
      const double want = kDraws * std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
      if (want < 20) continue;
      chi2 += (seen[k] - want) * (seen[k] - want) / want;
      ++bins;
    }
    EXPECT_LT(chi2, bins + 5 * std::sqrt(2.0 * bins)) << mean;
  }
}

TEST(ShowerRandom, GammaHasTheRightMeanAndVariance) {
  for (const double shape : {0.02, 0.3, 1.0, 4.5, 300.0}) {
    ShowerRandom random(4, 2, ShowerStream::kProfile);
    constexpr int kDraws = 60000;
    const Moments got = moments(kDraws, [&] { return random.gamma(shape); });
    EXPECT_NEAR(got.mean, shape, 4 * std::sqrt(shape / kDraws)) << shape;
    EXPECT_NEAR(got.variance, shape, 4 * std::sqrt((2 * shape * shape + 6 * shape) / kDraws))
        << shape;
  }
}

TEST(ShowerRandom, ExponentialHasTheRightMeanAndVariance) {
  ShowerRandom random(3, 1, ShowerStream::kSpots);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.exponential();
    ASSERT_GT(x, 0.0);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 1.0, 0.015);
  EXPECT_NEAR(squares / kDraws, 2.0, 0.07);
}

TEST(ShowerRandom, NormalHasTheRightMomentsAndUsesBothOfAPair) {
  ShowerRandom random(6, 0, ShowerStream::kProfile);
  const Moments got = moments(100000, [&] { return random.normal(); });
  EXPECT_NEAR(got.mean, 0, 0.013);
  EXPECT_NEAR(got.variance, 1, 0.02);
}

}  // namespace
}  // namespace troupe::pipeline
