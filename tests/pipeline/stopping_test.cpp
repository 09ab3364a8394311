// When training ends early.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/pipeline/apply_fixture.h"

namespace troupe::pipeline {
namespace {

using model::SlotKind;

// The generator's term "energy", four epochs of three iterations, of which it falls in one.
TEST_F(Apply, StoppingReadsTheMeanLossOfItsTermOverEachEpoch) {
  example_.options.stop = StoppingOptions{.network = kGenerator, .term = "energy", .patience = 2};
  TrainingState state = initial();
  const auto train = [&](float loss) {
    for (int n = 0; n < 12; ++n) {
      const bool g = slot_of(state) == SlotKind::kG;
      ASSERT_TRUE(
          step(state, constant(state, 0.125f,
                               {{"loss/generation", 9.0f}, {"loss/energy", g ? loss : 7.0f}}))
              .ok());
      if (n + 1 == 12) continue;
      EXPECT_EQ(ends_epoch(example_.options, state), n == 10);
    }
  };
  train(4.0f);
  train(3.0f);
  EXPECT_EQ(state.stopping->smoothed, 3.0);
  EXPECT_EQ(reason_to_stop(example_.options.stop, state), std::nullopt);
  train(3.0f);
  EXPECT_EQ(reason_to_stop(example_.options.stop, state), std::nullopt);
  train(5.0f);
  EXPECT_EQ(reason_to_stop(example_.options.stop, state),
            "the loss energy of the generator has not fallen for 2 epochs: it is 5, and was 3 at "
            "best");
  example_.options.stop->whose = "network";
  EXPECT_THAT(*reason_to_stop(example_.options.stop, state),
              testing::HasSubstr("energy of the network"));
}

// The first steps of three iterations tell what the Validator has found.
TEST_F(Apply, StoppingReadsAFigureInTheHeaderOfAStep) {
  example_.options.stop = StoppingOptions{.figure = "merit", .patience = 2};
  TrainingState state = initial();
  const auto iterate_after = [&](std::optional<double> distance) {
    for (int n = 0; n < 4; ++n) {
      StepRecord record = reduce(example_, state, random(state));
      if (n == 0 && distance) {
        record.header.judged = true;
        record.header.distance = *distance;
      }
      ASSERT_TRUE(apply(example_.layout, example_.options, record, state).ok());
      if (n + 1 == 4) continue;
      EXPECT_EQ(reason_to_stop(example_.options.stop, state), std::nullopt) << "slot " << n;
    }
  };
  iterate_after(3.0);
  iterate_after(std::nullopt);
  iterate_after(std::numeric_limits<double>::infinity());
  EXPECT_EQ(state.stopping->seen, (model::BestSoFar{3.0, 1, 0})) << "losses of an epoch count";
  iterate_after(2.0);
  iterate_after(2.5);
  EXPECT_EQ(reason_to_stop(example_.options.stop, state), std::nullopt);
  iterate_after(4.0);
  EXPECT_EQ(reason_to_stop(example_.options.stop, state),
            "the validator's merit has not come nearer to its ideal for 2 validations: it is 4 "
            "from it, and was 2 at best");
}

// Somebody who marks a header changes nothing where no figure is asked for.
TEST_F(Apply, JudgedStateChangesNothingWhereALossStops) {
  example_.options.stop = StoppingOptions{.network = kGenerator, .patience = 2};
  TrainingState plain = initial(), marked = initial();
  StepRecord record = reduce(example_, plain, random(plain));
  ASSERT_TRUE(apply(example_.layout, example_.options, record, plain).ok());
  record.header.judged = true;
  record.header.distance = 1.0;
  ASSERT_TRUE(apply(example_.layout, example_.options, record, marked).ok());
  EXPECT_EQ(hash_of_state(marked), hash_of_state(plain));
}

TEST(Stopping, SmoothsAndStopsAtItsTarget) {
  const StoppingOptions options{.smoothing = 0.5, .target = 2.0};
  StoppingState state;
  const auto smoothed_after = [&](double sum) {
    state.loss_sum = sum;
    state.loss_steps = 2;
    state = after_epoch(options, state);
    return state.smoothed;
  };
  EXPECT_EQ(smoothed_after(8.0), 4.0);
  EXPECT_EQ(smoothed_after(4.0), 3.0);
  EXPECT_EQ(reason_to_stop(options, state), std::nullopt);
  EXPECT_EQ(smoothed_after(2.0), 2.0);
  EXPECT_TRUE(reason_to_stop(options, state).has_value());
  // Without a step of the network there is no value.
  EXPECT_EQ(after_epoch(options, StoppingState{}), StoppingState{});
  EXPECT_EQ(reason_to_stop(options, StoppingState{}), std::nullopt);
}

}  // namespace
}  // namespace troupe::pipeline
