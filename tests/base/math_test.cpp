#include "runtime/base/math.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

double worst_relative_error(const std::function<double(double)>& ours,
                            const std::function<long double(long double)>& exact, double from,
                            double to) {
  double worst = 0.0;
  constexpr int kSamples = 200001;
  for (int i = 0; i < kSamples; ++i) {
    const double x = from + (to - from) * i / (kSamples - 1);
    const long double want = exact(x);
    if (std::fabs(want) < 1e-300L) continue;
    const double error = static_cast<double>(std::fabs((ours(x) - want) / want));
    if (std::isnan(error)) return error;
    worst = std::max(worst, error);
  }
  return worst;
}

TEST(Math, ExpIsWithinItsErrorBound) {
  EXPECT_LT(worst_relative_error(
                math::exp, [](long double x) { return std::exp(x); }, -700, 700),
            4e-15);
  EXPECT_LT(worst_relative_error(
                math::exp, [](long double x) { return std::exp(x); }, -1, 1),
            4e-15);
}

TEST(Math, LogIsWithinItsErrorBound) {
  const auto exact = [](long double x) { return std::log(x); };
  EXPECT_LT(worst_relative_error(math::log, exact, 1e-6, 3), 4e-15);
  EXPECT_LT(worst_relative_error(math::log, exact, 0.999, 1.001), 4e-15);
  EXPECT_LT(worst_relative_error(math::log, exact, 1, 1e12), 4e-15);
}

TEST(Math, SineAndCosineAreWithinAbsoluteError) {
  for (int i = -200000; i < 200000; ++i) {
    const double x = i * 0.01;
    ASSERT_NEAR(math::sin(x), static_cast<double>(std::sin(static_cast<long double>(x))), 1e-15);
    ASSERT_NEAR(math::cos(x), static_cast<double>(std::cos(static_cast<long double>(x))), 1e-15);
  }
}

TEST(Math, AtanTanhSigmoidAreWithinTheirErrorBound) {
  EXPECT_LT(worst_relative_error(
                math::atan, [](long double x) { return std::atan(x); }, -40, 40.001),
            4e-15);
  EXPECT_LT(worst_relative_error(
                math::tanh, [](long double x) { return std::tanh(x); }, -25, 25.001),
            4e-14);
  EXPECT_LT(worst_relative_error(
                math::sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, -300, 40),
            4e-15);
}

TEST(Math, PowMatchesForThePowersOfTheModels) {
  for (const double p : {0.85, 1.0 / 0.85}) {
    EXPECT_LT(
        worst_relative_error(
            [p](double x) { return math::pow(x, p); },
            [p](long double x) { return std::pow(x, static_cast<long double>(p)); }, 1e-8, 500),
        2e-14);
    EXPECT_EQ(math::pow(0.0, p), 0.0);
  }
}

TEST(Math, LimitsFollowIeee) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(math::exp(kInfinity), kInfinity);
  EXPECT_EQ(math::exp(-kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(math::exp(std::nan(""))));
  EXPECT_EQ(math::log(0.0), -kInfinity);
  EXPECT_TRUE(std::isnan(math::log(-1.0)));
  EXPECT_EQ(math::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(math::sin(kInfinity)));
  EXPECT_DOUBLE_EQ(math::atan(kInfinity), std::acos(0.0));
  EXPECT_EQ(math::tanh(1e9), 1.0);
  EXPECT_EQ(math::sigmoid(-1e9), 0.0);
}

}  // namespace
}  // namespace troupe::runtime
