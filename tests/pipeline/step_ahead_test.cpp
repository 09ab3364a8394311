#include "pipeline/steps/step_ahead.h"

#include <gtest/gtest.h>

namespace troupe::pipeline {
namespace {

using Schedule = std::vector<model::SlotKind>;
constexpr auto kDReal = model::SlotKind::kDReal;
constexpr auto kDFake = model::SlotKind::kDFake;
constexpr auto kG = model::SlotKind::kG;

// For the second of two steps; a third of another kind keeps the first from being behind it too.
StepAhead ahead(model::SlotKind in_flight, model::SlotKind next) {
  return step_ahead({in_flight, next, kDReal}, 0);
}

TEST(StepAhead, IsAllThatReadsNothingTheStepInFlightWrites) {
  EXPECT_EQ(ahead(kG, kDReal), StepAhead::kAll);

  EXPECT_EQ(ahead(kDReal, kDFake), StepAhead::kPreparation);
  EXPECT_EQ(ahead(kDFake, kDFake), StepAhead::kPreparation);
  EXPECT_EQ(ahead(kDReal, kG), StepAhead::kPreparation);
  EXPECT_EQ(ahead(kDFake, kG), StepAhead::kPreparation);

  EXPECT_EQ(ahead(kG, kG), StepAhead::kNothing);
  EXPECT_EQ(ahead(kG, kDFake), StepAhead::kNothing);
}

TEST(StepAhead, BehindTheLastStepComesTheNextIterationsFirst) {
  EXPECT_EQ(step_ahead({kDReal, kDFake, kG, kG}, 3), StepAhead::kAll);
  EXPECT_EQ(step_ahead({kDFake, kG, kDReal}, 2), StepAhead::kPreparation);
  EXPECT_EQ(step_ahead({kDFake, kDReal, kG}, 2), StepAhead::kNothing);
}

TEST(StepAhead, TwoStepsAreKeptOnlyWhereOneMayBeComputedAsAWhole) {
  EXPECT_TRUE(keeps_two_steps({kDReal, kDFake, kG, kG}));
  EXPECT_FALSE(keeps_two_steps({kDFake, kDReal, kG}));
  EXPECT_FALSE(keeps_two_steps({kDReal}));
}

}  // namespace
}  // namespace troupe::pipeline
