#include "model/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::model {
namespace {

// The rate after each of the epochs.
std::vector<double> rates(const LearningRateOptions& options, const std::vector<double>& metrics) {
  LearningRateState state;
  std::vector<double> result;
  for (const double metric : metrics) {
    state = after_epoch(options, state, {}, metric);
    result.push_back(learning_rate(options, state, {0}));
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
  LearningRateState state = after_iteration(options, {}, {41});
  state = after_epoch(options, state, {42}, 3.0);
  EXPECT_EQ(learning_rate(options, state, {1000}), 1e-3);
  EXPECT_EQ(state, LearningRateState{});
}

TEST(LearningRate, WarmupGrowsLinearlyToTheRate) {
  LearningRateOptions options;
  options.kind = LearningRateKind::kWarmup;
  options.rate = 0.8;
  options.length.count = 4;
  EXPECT_DOUBLE_EQ(learning_rate(options, {}, {0}), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(options, {}, {2}), 0.6);
  EXPECT_EQ(learning_rate(options, {}, {3}), 0.8);
  EXPECT_EQ(learning_rate(options, {}, {100}), 0.8);
  options.length.count = 0;
  EXPECT_EQ(learning_rate(options, {}, {0}), 0.8);
}

TEST(LearningRate, ExponentialMultipliesEveryDecayIterations) {
  LearningRateOptions options;
  options.kind = LearningRateKind::kExponential;
  options.rate = 2.0;
  options.decay = 0.96;
  options.every.count = 3;
  LearningRateState state;
  std::vector<double> seen;
  for (std::uint64_t iteration = 0; iteration < 7; ++iteration) {
    seen.push_back(learning_rate(options, state, {iteration}));
    state = after_iteration(options, state, {iteration});
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

LearningRatePart part(LearningRateKind kind, TrainingSpan length) {
  LearningRatePart part;
  part.kind = kind;
  part.length = length;
  return part;
}

// The rates of so many iterations, four to an epoch, all of whose epochs have the same loss.
std::vector<double> rates_of(const LearningRateOptions& options, std::uint64_t iterations) {
  LearningRateState state;
  std::vector<double> result;
  for (TrainingTime time{0, 4, 32}; time.iteration < iterations;) {
    result.push_back(learning_rate(options, state, time));
    state = after_iteration(options, state, time);
    ++time.iteration;
    if (time.iteration % 4 == 0) state = after_epoch(options, state, time, 1.0);
  }
  return result;
}

TEST(LearningRate, PartsFollowOneAnother) {
  LearningRateOptions options;
  options.rate = 1.0;
  options.parts = {
      part(LearningRateKind::kWarmup, {4, false}), part(LearningRateKind::kCosine, {1, true}),
      part(LearningRateKind::kConstant, {1, false}),
      part(LearningRateKind::kExponential, {4, false}), part(LearningRateKind::kConstant, {})};
  options.parts[1].to = 0.5;
  options.parts[3].every = {2, false};
  options.parts[3].decay = 0.5;
  const std::vector<double> rates = rates_of(options, 15);
  const std::vector<double> expected{0.25,
                                     0.5,
                                     0.75,
                                     1.0,  // warm-up
                                     1.0,
                                     0.75 + std::sqrt(0.5) / 4,
                                     0.75,
                                     0.75 - std::sqrt(0.5) / 4,  // cosine
                                     0.5,                        // constant
                                     0.5,
                                     0.5,
                                     0.25,
                                     0.25,  // exponential
                                     0.125,
                                     0.125};
  ASSERT_EQ(rates.size(), expected.size());
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-15) << i;
}

TEST(LearningRate, BehindItsLastPartItStays) {
  LearningRateOptions options;
  options.rate = 1.0;
  options.parts = {part(LearningRateKind::kCosine, {2, false})};
  options.parts[0].to = 0.25;
  EXPECT_THAT(rates_of(options, 5),
              testing::ElementsAre(1.0, testing::DoubleNear(0.625, 1e-15), 0.25, 0.25, 0.25));
  options.parts = {part(LearningRateKind::kExponential, {2, false})};
  options.parts[0].every = {1, false};
  options.parts[0].decay = 0.5;
  EXPECT_THAT(rates_of(options, 5), testing::ElementsAre(1.0, 0.5, 0.25, 0.25, 0.25));
}

// The floor of a part holds in it and behind it, and never raises what parts before it have left.
TEST(LearningRate, APlateauOfPartsHandsItsFloorOn) {
  LearningRateOptions options;
  options.rate = 1.0;
  options.parts = {part(LearningRateKind::kPlateau, {12, false}),
                   part(LearningRateKind::kConstant, {})};
  options.parts[0].patience = 1;
  options.parts[0].factor = 0.5;
  options.parts[0].min_rate = 0.75;
  const std::vector<double> rates = rates_of(options, 16);
  EXPECT_EQ(rates[7], 1.0);
  EXPECT_EQ(rates[8], 0.75);
  EXPECT_EQ(rates[15], 0.75);
  options.parts = {part(LearningRateKind::kCosine, {4, false}),
                   part(LearningRateKind::kPlateau, {})};
  options.parts[0].to = 0.25;
  options.parts[1].patience = 1;
  options.parts[1].min_rate = 0.75;
  EXPECT_EQ(rates_of(options, 24)[23], 0.25);
}

TEST(LearningRate, StepsComeAfterIterationsOrEpochs) {
  LearningRateOptions options;
  options.rate = 1.0;
  options.parts = {part(LearningRateKind::kSteps, {})};
  options.parts[0].at = {{1, false}, {1, true}};
  options.parts[0].factor = 0.5;
  EXPECT_THAT(rates_of(options, 6), testing::ElementsAre(1.0, 0.5, 0.5, 0.5, 0.25, 0.25));
}

// The epoch at whose end the plateau begins is the first it knows.
TEST(LearningRate, PlateauBehindAWarmUpCountsFromItsBeginning) {
  LearningRateOptions options;
  options.rate = 1.0;
  options.parts = {part(LearningRateKind::kWarmup, {1, true}),
                   part(LearningRateKind::kPlateau, {})};
  options.parts[1].factor = 0.5;
  options.parts[1].patience = 1;
  const std::vector<double> rates = rates_of(options, 13);
  EXPECT_EQ(rates[3], 1.0);
  EXPECT_EQ(rates[7], 1.0);
  EXPECT_EQ(rates[8], 0.5);
  EXPECT_EQ(rates[12], 0.25);
}

TEST(LearningRate, IsScaledByTheEventsOfAnIteration) {
  LearningRateOptions options;
  options.rate = 0.5;
  options.per_events = 8;
  options.scaled = RateScaling::kLinear;
  EXPECT_EQ(learning_rate(options, {}, {0, 1, 32}), 2.0);
  options.scaled = RateScaling::kSqrt;
  EXPECT_EQ(learning_rate(options, {}, {0, 1, 32}), 1.0);
}

}  // namespace
}  // namespace troupe::model
