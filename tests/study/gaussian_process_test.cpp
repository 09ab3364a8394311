// Numbers from tests/oracle/gaussian_process.py: scikit-learn's, and for words NumPy's.

#include "study/gaussian_process.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/random.h"
#include "study/expected_improvement.h"
#include "tests/study/study_support.h"

namespace troupe::study {
namespace {

const std::vector<double> kValues{0.8, -0.5, 1.2, -1.4, 0.1};

void expect_posterior(const GaussianProcess& process, const Coordinates& place, double mean,
                      double deviation) {
  const Posterior found = process.at(place);
  EXPECT_NEAR(found.mean, mean, 1e-10);
  EXPECT_NEAR(found.deviation, deviation, 1e-9);
}

TEST(GaussianProcess, PosteriorOfNumbersIsThatOfScikitLearn) {
  const GaussianProcess process({false, false},
                                {{0.1, 0.2}, {0.4, 0.9}, {0.7, 0.3}, {0.95, 0.6}, {0.25, 0.55}},
                                kValues, {{0.3, 0.8}, 1.7, 0.01});
  expect_posterior(process, {0.1, 0.2}, 0.792637489944, 0.099285945950);
  expect_posterior(process, {0.5, 0.5}, 0.587432890279, 0.589157646739);
  expect_posterior(process, {0.9, 0.05}, -0.007490271172, 0.803788494524);
  EXPECT_NEAR(process.log_likelihood(), -7.873110154297, 1e-10);
}

TEST(GaussianProcess, PosteriorOfWordsIsThatOfTheFormulas) {
  const GaussianProcess process(
      {false, false, true},
      {{0.1, 0.2, 0}, {0.4, 0.9, 1}, {0.7, 0.3, 0}, {0.95, 0.6, 2}, {0.25, 0.55, 1}}, kValues,
      {{0.3, 0.8, 0.6}, 1.7, 0.01});
  expect_posterior(process, {0.1, 0.2, 1}, 0.333391467909, 0.825610276903);
  expect_posterior(process, {0.5, 0.5, 0}, 0.954766532450, 0.875014880880);
  expect_posterior(process, {0.9, 0.05, 2}, -0.875679502073, 0.926400201899);
  EXPECT_NEAR(process.log_likelihood(), -7.019625647035, 1e-10);
}

// A function of the first dimension alone, with and without noise.
TEST(GaussianProcess, FitFindsWhichDimensionActsAndHowMuchNoiseThereIs) {
  std::vector<Coordinates> places;
  std::vector<double> smooth, noisy;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const runtime::RandomPosition position{.seed = 5, .micro_batch = i};
    places.push_back({runtime::random_uniform(position, 0), runtime::random_uniform(position, 1)});
    smooth.push_back(std::sin(7.0 * places.back()[0]) * std::numbers::sqrt2);
    noisy.push_back(smooth.back() + 0.5 * runtime::random_normal(position, 4));
  }
  const KernelOptions found = fit_kernel({false, false}, places, smooth);
  EXPECT_LT(found.lengths[0], 1.5);
  EXPECT_GT(found.lengths[1], 3.0 * found.lengths[0]);
  EXPECT_LT(found.noise, 1e-3);
  const KernelOptions with_noise = fit_kernel({false, false}, places, noisy);
  EXPECT_NEAR(std::sqrt(with_noise.noise), 0.5, 0.2);
  EXPECT_EQ(fit_kernel({false, false}, places, noisy), with_noise);
}

TEST(GaussianProcess, ValuesThatAreAllTheSameAreNoFault) {
  const std::vector<Coordinates> places{{0.1}, {0.5}, {0.5}, {0.9}};
  const std::vector<double> values(4, 0.0);
  const KernelOptions options = fit_kernel({false}, places, values);
  const GaussianProcess process({false}, places, values, options);
  EXPECT_EQ(process.at({0.3}).mean, 0.0);
  EXPECT_TRUE(std::isfinite(process.at({0.3}).deviation));
}

TEST(ExpectedImprovement, IsItsFormula) {
  EXPECT_NEAR(expected_improvement({0.3, 0.5}, 0.1), 0.1152194184737265, 1e-15);
  EXPECT_NEAR(expected_improvement({-1.0, 0.2}, 0.4), 1.400000000000035, 1e-14);
  EXPECT_NEAR(expected_improvement({0.0, 1.0}, 0.0), 0.3989422804014327, 1e-15);
  EXPECT_EQ(expected_improvement({0.3, 0.0}, 0.5), 0.2);
  EXPECT_EQ(expected_improvement({0.7, 0.0}, 0.5), 0.0);
  for (const double z : {-40.0, -9.0, -7.1, -7.0, -3.0, -0.5, 0.0, 0.5, 3.0, 9.0}) {
    EXPECT_NEAR(normal_probability(z), 0.5 * std::erfc(-z / std::numbers::sqrt2), 1e-14) << z;
  }
}

// 2.426025087536919e-53 is scipy's.
TEST(ExpectedImprovement, LogarithmTellsWhatIsTooSmallForTheValue) {
  for (const double mean : {-1.0, 0.0, 0.5, 3.0}) {
    const Posterior posterior{mean, 0.5};
    EXPECT_NEAR(log_expected_improvement(posterior, 0.1),
                std::log(expected_improvement(posterior, 0.1)), 1e-8);
  }
  EXPECT_NEAR(log_expected_improvement({2.0, 0.1}, 0.5), std::log(2.426025087536919e-53), 1e-6);
  // Both sides of where the formula changes.
  EXPECT_NEAR(log_expected_improvement({9.9999, 1.0}, 0.0),
              log_expected_improvement({10.0001, 1.0}, 0.0), 0.003);
  EXPECT_GT(log_expected_improvement({100.0, 1.0}, 0.0),
            log_expected_improvement({101.0, 1.0}, 0.0));
  EXPECT_EQ(log_expected_improvement({0.7, 0.0}, 0.5), -INFINITY);
}

}  // namespace
}  // namespace troupe::study
