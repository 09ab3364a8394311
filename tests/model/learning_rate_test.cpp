#include "model/learning_rate.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::model {
namespace {

// The rate after each of the epochs.
std::vector<double> rates(const LearningRateOptions& options, const std::vector<double>& metrics) {
  LearningRateState state;
  std::vector<double> result;
  for (const double metric : metrics) {
    state = after_epoch(options, state, metric);
    result.push_back(learning_rate(options, state, 0));
  }
  return result;
}

LearningRateOptions plateau(std::uint32_t patience) {
  LearningRateOptions options;
  options.kind = LearningRateKind::kPlateau;
  options.rate = 1.0;
  options.factor = 0.5;
  options.patience = patience;
  return options;
}

TEST(LearningRate, ConstantStaysWhatItIs) {
  LearningRateOptions options;
  LearningRateState state = after_iteration(options, {}, 41);
  state = after_epoch(options, state, 3.0);
  EXPECT_EQ(learning_rate(options, state, 1000), 1e-3);
  EXPECT_EQ(state, LearningRateState{});
}

TEST(LearningRate, WarmupGrowsLinearlyToTheRate) {
  LearningRateOptions options;
  options.kind = LearningRateKind::kWarmup;
  options.rate = 0.8;
  options.warmup_iterations = 4;
  EXPECT_DOUBLE_EQ(learning_rate(options, {}, 0), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(options, {}, 2), 0.6);
  EXPECT_EQ(learning_rate(options, {}, 3), 0.8);
  EXPECT_EQ(learning_rate(options, {}, 100), 0.8);
  options.warmup_iterations = 0;
  EXPECT_EQ(learning_rate(options, {}, 0), 0.8);
}

TEST(LearningRate, ExponentialMultipliesEveryDecayIterations) {
  LearningRateOptions options;
  options.kind = LearningRateKind::kExponential;
  options.rate = 2.0;
  options.decay = 0.96;
  options.decay_iterations = 3;
  LearningRateState state;
  std::vector<double> seen;
  for (std::uint64_t iteration = 0; iteration < 7; ++iteration) {
    seen.push_back(learning_rate(options, state, iteration));
    state = after_iteration(options, state, iteration);
  }
  const double once = 2.0 * 0.96, twice = 2.0 * (0.96 * 0.96);
  EXPECT_EQ(seen, (std::vector<double>{2.0, 2.0, 2.0, once, once, once, twice}));
}

TEST(LearningRate, PlateauFallsAfterPatienceEpochsWithoutGain) {
  EXPECT_EQ(rates(plateau(2), {5.0, 5.0, 5.0, 5.0, 5.0, 4.0, 4.0, 4.0}),
            (std::vector<double>{1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125}));
}

TEST(LearningRate, PlateauCountsOnlyGainsAboveMinDelta) {
  LearningRateOptions options = plateau(1);
  options.min_delta = 0.1;
  EXPECT_EQ(rates(options, {5.0, 4.95, 4.85}), (std::vector<double>{1.0, 0.5, 0.5}));
}

TEST(LearningRate, PlateauPausesForTheCooldown) {
  LearningRateOptions options = plateau(1);
  options.cooldown = 2;
  // Reduced in epoch 2; the cooldown ends in the second epoch after it, which then counts again.
  EXPECT_EQ(rates(options, {5.0, 5.0, 5.0, 5.0, 5.0}),
            (std::vector<double>{1.0, 0.5, 0.5, 0.25, 0.25}));
}

TEST(LearningRate, PlateauStopsAtItsFloorAndNeverRises) {
  LearningRateOptions options = plateau(1);
  options.min_rate = 0.3;
  EXPECT_EQ(rates(options, {5.0, 5.0, 5.0, 5.0}), (std::vector<double>{1.0, 0.5, 0.3, 0.3}));
  options.min_rate = 7.0;
  EXPECT_EQ(rates(options, {5.0, 5.0, 5.0}), (std::vector<double>{1.0, 1.0, 1.0}));
}

TEST(LearningRate, PlateauAcceptsNegativeMetrics) {
  EXPECT_EQ(rates(plateau(1), {-1.0, -2.0, -1.5}), (std::vector<double>{1.0, 1.0, 0.5}));
}

}  // namespace
}  // namespace troupe::model
