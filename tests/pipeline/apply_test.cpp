#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/exact_sum.h"
#include "pipeline/steps/training_state.h"
#include "tests/pipeline/apply_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using model::SlotKind;
using ::testing::HasSubstr;

TEST_F(Apply, StateDoesNotDependOnHowAStepWasSharedOut) {
  TrainingState expected = initial();
  iterate(expected, 2);
  const std::vector<Sharing> sharings{
      {{{0, 1, 2, 3}}, 8},    {{{3, 2, 1, 0}}, 64},       {{{0}, {1}, {2}, {3}}, 40},
      {{{2, 0}, {3, 1}}, 88}, {{{1, 3, 0}, {}, {2}}, 16}, {{{3}, {2, 1, 0}}, 1 << 20},
  };
  for (const Sharing& sharing : sharings) {
    TrainingState state = initial();
    iterate(state, 2, sharing);
    EXPECT_EQ(hash_of_state(state), hash_of_state(expected))
        << sharing.members.size() << " members";
  }
}

TEST_F(Apply, AllPermutationsOfMicroBatchesGiveOneRecord) {
  const TrainingState state = initial();
  const Contributions contributions = random(state);
  const StepRecord expected = reduce(example_, state, contributions);
  EXPECT_EQ(expected.header.attempt, 1u) << "the first step of a slot measures first";
  std::vector<std::uint32_t> order{0, 1, 2, 3};
  do {
    const Sharing sharing{{{order[0], order[1]}, {order[2], order[3]}}, 56};
    const StepRecord record = reduce(example_, state, contributions, sharing);
    EXPECT_EQ(record.header, expected.header);
    EXPECT_EQ(record.scales, expected.scales);
    EXPECT_TRUE(std::ranges::equal(record.sums.bytes(), expected.sums.bytes()));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(Apply, ShortIterationIsTheMeanOfItsMicroBatchesAndEndsTheEpoch) {
  TrainingState whole = initial();
  iterate(whole, 2);
  TrainingState state = whole;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(step(whole, constant(whole, 0.25f)).ok());
  example_.options.short_iteration = {.every = 3, .micro_batches = 2};
  EXPECT_DEATH(static_cast<void>(step(state, constant(state, 0.25f))), "all micro-batches");
  const Sharing half{{{1}, {0}}, 64};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(step(state, constant(state, 0.25f), half).ok());
  EXPECT_EQ(state.epoch, 1u);
  EXPECT_EQ(state.epoch_events, 0u);
  EXPECT_EQ(state.ledger_events, 2u * 4 * 8 + 4 * 4);
  expect_same(state.generator, whole.generator);
  expect_same(state.discriminator, whole.discriminator);
  iterate(state, 2);
  EXPECT_FALSE(ends_epoch(example_.options, state));
  EXPECT_EQ(state.epoch, 1u);
}

TEST_F(Apply, GrowthBeyondTheScaleIsRetriedAndAppliedOnce) {
  TrainingState state = initial();
  iterate(state, 1);
  Contributions grown = random(state);
  grown[2][5] *= 0x1p20f;
  const StepRecord record = reduce(example_, state, grown);
  EXPECT_EQ(record.header.attempt, 1u);
  ASSERT_TRUE(apply(example_.layout, example_.options, record, state).ok());
  EXPECT_EQ(state.discriminator.counters.updates, 3u);
  EXPECT_EQ(state.ledger_events, 5u * 8);
}

// In double, from the formulas: mean over micro-batches, RMSprop with momentum, moving statistics.
TEST_F(Apply, DiscriminatorStepFollowsTheFormulas) {
  TrainingState state = initial();
  const TrainingState before = state;
  const Contributions contributions = random(state);
  ASSERT_TRUE(step(state, contributions).ok());

  const auto mean = [&](std::size_t i) {
    return (double{contributions[0][i]} + contributions[1][i] + contributions[2][i] +
            contributions[3][i]) /
           4;
  };
  for (std::size_t i = 0; i < 19; ++i) {
    const double g = mean(i), v = 0.1 * g * g, u = 1e-3 * g / (std::sqrt(v) + 1e-7);
    EXPECT_NEAR(state.discriminator.optimiser_arrays[i], v, 1e-6 * v + 1e-30);
    EXPECT_NEAR(state.discriminator.optimiser_arrays[19 + i], u, 1e-6 * std::fabs(u));
    EXPECT_NEAR(state.discriminator.weights[i], before.discriminator.weights[i] - u, 1e-6);
  }
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(state.discriminator.moving[i], 0.75f * before.discriminator.moving[i] +
                                                       0.25f * static_cast<float>(mean(19 + i)));
  }
  EXPECT_EQ(state.generator.weights, before.generator.weights);
  EXPECT_EQ(state.generator.moving, before.generator.moving);
  EXPECT_EQ(state.generator.counters, before.generator.counters);
}

TEST_F(Apply, GeneratorStepMovesBothStatisticsAndOnlyItsOwnWeights) {
  TrainingState state = initial();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(step(state, random(state)).ok());
  const TrainingState before = state;
  ASSERT_TRUE(step(state, constant(state, 0.5f)).ok());
  // Adam's first step is the learning rate against the gradient's sign.
  for (std::size_t i = 0; i < 34; ++i) {
    EXPECT_NEAR(state.generator.weights[i], before.generator.weights[i] - 1e-3f, 1e-6);
  }
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_FLOAT_EQ(state.generator.moving[i], 0.9f * before.generator.moving[i] + 0.1f * 0.5f);
  }
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(state.discriminator.moving[i],
                    0.75f * before.discriminator.moving[i] + 0.25f * 0.5f);
  }
  EXPECT_EQ(state.discriminator.weights, before.discriminator.weights);
  EXPECT_EQ(state.discriminator.optimiser_arrays, before.discriminator.optimiser_arrays);
  EXPECT_EQ(state.discriminator.counters, before.discriminator.counters);
  EXPECT_EQ(state.generator.counters.updates, 1u);
  EXPECT_EQ(state.generator.counters.beta_1_power, 0.9);
}

TEST_F(Apply, ScaleOfATensorFollowsItsOwnElementsOnly) {
  TrainingState state = initial(), louder = initial();
  Contributions contributions = random(state);
  ASSERT_TRUE(step(state, contributions).ok());
  const auto& layout = example_.layout.of(SlotKind::kDReal);
  const auto& tensor = layout.tensors[2];
  for (auto& one : contributions) {
    for (std::int64_t i = 0; i < tensor.size; ++i) {
      one[static_cast<std::size_t>(tensor.offset + i)] *= 0x1p30f;
    }
  }
  ASSERT_TRUE(step(louder, contributions).ok());
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    EXPECT_EQ(louder.scales[0][i], state.scales[0][i] - (i == 2 ? 30 : 0))
        << layout.tensors[i].name;
  }
  for (std::size_t i = 0; i < 19; ++i) {
    const bool within = static_cast<std::int64_t>(i) >= tensor.offset &&
                        static_cast<std::int64_t>(i) < tensor.offset + tensor.size;
    if (!within) {
      EXPECT_EQ(louder.discriminator.weights[i], state.discriminator.weights[i]) << i;
    }
  }
}

TEST_F(Apply, ZeroTensorKeepsItsScale) {
  TrainingState state = initial();
  iterate(state, 1);
  const auto scales = state.scales;
  ASSERT_TRUE(step(state, constant(state, 0.0f)).ok());
  EXPECT_EQ(state.scales, scales);
}

TEST_F(Apply, CountsSlotsIterationsEpochsAndTheLedger) {
  TrainingState state = initial();
  std::uint64_t sum = 0;
  for (std::uint64_t n = 0; n < 4 * 4; ++n) {
    EXPECT_EQ(state.step(4), n);
    EXPECT_EQ(state.iteration, n / 4);
    EXPECT_EQ(state.epoch, n / 12);
    EXPECT_EQ(state.epoch_events, (n / 4 % 3) * 8);
    EXPECT_EQ(state.ledger_events, n * 8);
    for (std::uint64_t event = 0; event < 8; ++event) {
      sum += event_mix(event, state.iteration, state.slot);
    }
    ASSERT_TRUE(step(state, random(state)).ok());
    EXPECT_EQ(state.ledger_sum, sum);
  }
}

TEST_F(Apply, LossesAreUnweightedMeansOfTheStep) {
  TrainingState state = initial();
  Contributions contributions = constant(state, 0.0f);
  const auto& layout = example_.layout.of(SlotKind::kDReal);
  const auto place = [&](const char* name) {
    return static_cast<std::size_t>(
        layout.tensors[static_cast<std::size_t>(layout.find(name))].offset);
  };
  for (std::size_t m = 0; m < 4; ++m) {
    contributions[m][place("loss/generation")] = 0.5f + 0.25f * static_cast<float>(m);
    contributions[m][place("loss/energy")] = -4.0f;
  }
  const StepRecord record = reduce(example_, state, contributions);
  EXPECT_EQ(step_losses(layout, record), (std::vector<double>{0.875, -4.0}));
  ASSERT_TRUE(apply(example_.layout, example_.options, record, state).ok());
  EXPECT_EQ(state.epoch_loss[kDiscriminator], 3.0 * 0.875 + 0.5 * -4.0);
  EXPECT_EQ(state.epoch_loss_steps, (std::array<std::uint64_t, 2>{0, 1}));
}

TEST_F(Apply, PlateauReadsTheMeanWeightedLossOfEachNetworksEpoch) {
  example_.options.generator_rate.kind = model::LearningRateKind::kPlateau;
  example_.options.generator_rate.patience = 1;
  example_.options.discriminator_rate = example_.options.generator_rate;
  TrainingState state = initial();
  // The generator's loss stays, the discriminator's falls.
  for (int n = 0; n < 2 * 12; ++n) {
    const float loss =
        slot_of(state) == SlotKind::kG ? 2.0f : 4.0f - static_cast<float>(state.epoch);
    ASSERT_TRUE(
        step(state, constant(state, 0.125f, {{"loss/generation", loss}, {"loss/energy", 1.0f}}))
            .ok());
  }
  EXPECT_EQ(state.epoch, 2u);
  EXPECT_EQ(state.generator.learning_rate.seen.best, 3.0 * 2.0 + 0.5);
  EXPECT_EQ(state.generator.learning_rate.scale, 0.1);
  EXPECT_EQ(state.discriminator.learning_rate.seen.best, 3.0 * 3.0 + 0.5);
  EXPECT_EQ(state.discriminator.learning_rate.scale, 1.0);
  EXPECT_EQ(state.epoch_loss, (std::array<double, 2>{0.0, 0.0}));
  EXPECT_EQ(state.epoch_loss_steps, (std::array<std::uint64_t, 2>{0, 0}));
}

TEST_F(Apply, LearningRatesFollowTheIteration) {
  example_.options.generator_rate.kind = model::LearningRateKind::kExponential;
  example_.options.generator_rate.every.count = 2;
  TrainingState state = initial();
  iterate(state, 5);
  EXPECT_EQ(state.generator.learning_rate.scale, 0.96 * 0.96);
  EXPECT_EQ(state.discriminator.learning_rate.scale, 1.0);
}

class EmptyImages : public Apply {
 protected:
  // One iteration whose d_fake slots count these empty images per micro-batch, in turn.
  runtime::Result<void> iterate_with(TrainingState& state, const std::vector<float>& empty) const {
    std::size_t fakes = 0;
    runtime::Result<void> result;
    do {
      EXPECT_TRUE(result.ok()) << "an error before the iteration's end";
      const float count = slot_of(state) == SlotKind::kDFake ? empty[fakes++] : 0.0f;
      result = step(state, constant(state, 0.25f, {{"empty_images", count}}));
    } while (state.slot != 0);
    return result;
  }
};

TEST_F(EmptyImages, TenIterationsInARowEndTheRunWithACompleteState) {
  TrainingState state = initial();
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(iterate_with(state, {2.0f}).ok());
  EXPECT_EQ(state.empty_iterations, 9u);
  ASSERT_THAT(iterate_with(state, {2.0f}),
              FailsWith(runtime::ErrorKind::kDiverged, "iteration 9: every fake of the last 10"));
  EXPECT_EQ(state.step(4), 40u);
  EXPECT_EQ(state.ledger_events, 40u * 8);
  EXPECT_EQ(state.generator.counters.updates, 20u);
}

TEST_F(EmptyImages, OneFakeWithEnergyStartsTheCountAnew) {
  TrainingState state = initial();
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(iterate_with(state, {2.0f}).ok());
  ASSERT_TRUE(iterate_with(state, {1.0f}).ok());
  EXPECT_EQ(state.empty_iterations, 0u);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(iterate_with(state, {2.0f}).ok());
  EXPECT_FALSE(iterate_with(state, {2.0f}).ok());
}

TEST_F(EmptyImages, IterationCountsOnceAndOnlyIfAllItsFakesAreEmpty) {
  example_.options.schedule = {SlotKind::kDReal, SlotKind::kDFake, SlotKind::kDFake, SlotKind::kG};
  TrainingState state = initial();
  ASSERT_TRUE(iterate_with(state, {2.0f, 2.0f}).ok());
  EXPECT_EQ(state.empty_iterations, 1u);
  ASSERT_TRUE(iterate_with(state, {2.0f, 0.0f}).ok());
  EXPECT_EQ(state.empty_iterations, 0u);
  ASSERT_TRUE(iterate_with(state, {0.0f, 2.0f}).ok());
  EXPECT_EQ(state.empty_iterations, 0u);
}

class ApplyDeathTest : public Apply {};

TEST_F(ApplyDeathTest, RecordAppliedTwiceBreaksAnInvariant) {
  TrainingState state = initial();
  const StepRecord record = reduce(example_, state, random(state));
  ASSERT_TRUE(apply(example_.layout, example_.options, record, state).ok());
  EXPECT_DEATH((void)apply(example_.layout, example_.options, record, state), "another step");
}

TEST_F(ApplyDeathTest, RecordWithoutAllMicroBatchesBreaksAnInvariant) {
  TrainingState state = initial();
  const StepRecord record = reduce(example_, state, random(state), {{{0, 1, 3}}});
  EXPECT_DEATH((void)apply(example_.layout, example_.options, record, state),
               "does not hold all micro-batches");
}

TEST_F(ApplyDeathTest, FlaggedRecordBreaksAnInvariant) {
  TrainingState state = initial();
  StepRecord record = reduce(example_, state, random(state));
  record.header.flagged = true;
  EXPECT_DEATH((void)apply(example_.layout, example_.options, record, state),
               "not to be committed");
}

// The same numbers as integers and as floats: every sum of them is exact in both.
TEST_F(Apply, FloatsOfALossyRecordChangeTheNetworksAsTheIntegersTheyStandFor) {
  TrainingState exact = initial(), lossy = initial();
  for (const model::SlotKind slot : example_.options.schedule) {
    const auto& layout = example_.layout.of(slot);
    Contributions contributions = random(exact);
    for (auto& vector : contributions) {
      for (float& value : vector) value = std::round(value * 1024.0F) / 1024.0F;
    }
    const StepRecord integers = reduce(example_, exact, contributions);
    const StepRecord floats = as_floats(layout, integers, contributions);
    ASSERT_GT(floats.front.size, 0);
    ASSERT_TRUE(apply(example_.layout, example_.options, integers, exact).ok());
    ASSERT_TRUE(apply(example_.layout, example_.options, floats, lossy).ok());
    expect_same(lossy.generator, exact.generator);
    expect_same(lossy.discriminator, exact.discriminator);
    EXPECT_EQ(lossy.epoch_loss, exact.epoch_loss);
    EXPECT_EQ(lossy.ledger_sum, exact.ledger_sum);
  }
  EXPECT_NE(lossy.generator.weights, initial().generator.weights);
}

}  // namespace
}  // namespace troupe::pipeline
