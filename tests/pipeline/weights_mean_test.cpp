// The mean of the generator's weights that is kept beside them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/pipeline/apply_fixture.h"

namespace troupe::pipeline {
namespace {

using model::SlotKind;

// Nothing of training depends on the mean, which follows the formula in double.
TEST_F(Apply, MeanOfWeightsFollowsTheUpdatesOfTheGenerator) {
  TrainingState plain = initial();
  example_.options.mean = MeanOptions{0.6};
  TrainingState state = initial();
  const auto in_double = [](const std::vector<float>& values) {
    return std::vector<double>(values.begin(), values.end());
  };
  std::vector<double> weights = in_double(state.generator.weights);
  std::vector<double> moving = in_double(state.generator.moving);
  EXPECT_EQ(state.mean->network.weights, state.generator.weights);
  int updates = 0;
  for (int n = 0; n < 4 * 12; ++n) {
    const bool is_update = slot_of(state) == SlotKind::kG;
    const Contributions contributions = random(state);
    ASSERT_TRUE(step(state, contributions).ok());
    example_.options.mean.reset();
    ASSERT_TRUE(step(plain, contributions).ok());
    example_.options.mean = MeanOptions{0.6};
    if (!is_update) continue;
    ++updates;
    // 14 / (14 + 9) is the first that is above 0.6.
    const double decay = updates < 14 ? updates / (updates + 9.0) : 0.6;
    const auto follow = [decay](const std::vector<float>& values, std::vector<double>& mean) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        mean[i] = decay * mean[i] + (1.0 - decay) * double{values[i]};
      }
    };
    follow(state.generator.weights, weights);
    follow(state.generator.moving, moving);
  }
  EXPECT_EQ(updates, 24);
  EXPECT_EQ(state.mean->updates, 24u);
  const auto expect_near = [](const std::vector<float>& found, const std::vector<double>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], wanted[i], 1e-6 * std::max(1.0, std::abs(wanted[i]))) << i;
    }
  };
  expect_near(state.mean->network.weights, weights);
  expect_near(state.mean->network.moving, moving);
  EXPECT_NE(state.mean->network.weights, state.generator.weights);
  EXPECT_EQ(&state.result(), &state.mean->network);
  expect_same(state.generator, plain.generator);
  expect_same(state.discriminator, plain.discriminator);
  state.mean.reset();
  EXPECT_EQ(hash_of_state(state), hash_of_state(plain));
}

TEST_F(Apply, MeanPutInPlaceIsTheGeneratorAndLeavesNoMean) {
  example_.options.mean = MeanOptions{0.9};
  TrainingState state = initial();
  iterate(state, 3);
  const MeanState mean = *state.mean;
  const NetworkState discriminator = state.discriminator;
  put_mean_in_place(state);
  EXPECT_FALSE(state.mean.has_value());
  EXPECT_EQ(state.generator.weights, mean.network.weights);
  EXPECT_EQ(state.generator.moving, mean.network.moving);
  expect_same(state.discriminator, discriminator);
}

}  // namespace
}  // namespace troupe::pipeline
