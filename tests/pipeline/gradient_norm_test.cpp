#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/exact_sum.h"
#include "pipeline/steps/training_state.h"

namespace troupe::pipeline {
namespace {

using Role = model::ContributionTensor::Role;

// Gradients of 5 and 4 elements, then a loss.
model::ContributionLayout layout() {
  model::ContributionLayout layout;
  layout.tensors = {{"generator/a", Role::kGeneratorGradient, 0, 0, 5},
                    {"generator/b", Role::kGeneratorGradient, 1, 5, 4},
                    {"loss/generation", Role::kLoss, 0, 9, 1}};
  layout.size = 10;
  return layout;
}

StepRecord exact_record(const std::vector<std::int64_t>& sums, std::uint32_t micro_batches) {
  StepRecord record;
  record.header.micro_batches = micro_batches;
  record.scales = {4, 2, 0};
  record.sums = runtime::Buffer::copy_of(std::as_bytes(std::span(sums)));
  return record;
}

TEST(GradientNorm, IsThatOfTheMeanWithoutWhatIsNoGradient) {
  // Means over two micro-batches: 3 in the first tensor, 4 in the second.
  const StepRecord record = exact_record({0, 0, 0, 0, 3 * 2 * 16, 0, 4 * 2 * 4, 0, 0, 1000}, 2);
  EXPECT_DOUBLE_EQ(gradient_norm(layout(), record), 5.0);
}

TEST(GradientNorm, IsThatOfTheMeansThatAreApplied) {
  std::vector<std::int64_t> sums{1, -20, 300, -4000, 50000, -600000, 7, 8, 9, 10};
  const StepRecord record = exact_record(sums, 3);
  double squares = 0.0;
  for (std::size_t i = 0; i < 9; ++i) {
    const double mean = model::restored_mean(sums[i], record.scales[i < 5 ? 0 : 1], 3);
    squares += mean * mean;
  }
  EXPECT_NEAR(gradient_norm(layout(), record), std::sqrt(squares), 1e-9 * std::sqrt(squares));
}

TEST(GradientNorm, LeavesOutTensorsThatAreAllZero) {
  StepRecord record = exact_record(std::vector<std::int64_t>(10, 0), 2);
  record.scales = {model::kNoExponent, model::kNoExponent, model::kNoExponent};
  EXPECT_EQ(gradient_norm(layout(), record), 0.0);
}

TEST(GradientNorm, HoldsTheLargestSums) {
  const StepRecord record =
      exact_record(std::vector<std::int64_t>(10, std::numeric_limits<std::int64_t>::min()), 1);
  EXPECT_TRUE(std::isfinite(gradient_norm(layout(), record)));
}

TEST(GradientNorm, OfALossyReductionIsThatOfItsFloats) {
  StepRecord record;
  record.scales = {0, 0, 0};
  record.front = {9, SumKind::kFloat32};
  record.header.micro_batches = 2;
  const SumLayout sums{10, record.front};
  record.sums = runtime::Buffer::zeroed(sums.bytes());
  const auto floats = sums.parts_of(record.sums).floats;
  floats[1] = 6.0F;
  floats[8] = -8.0F;
  EXPECT_DOUBLE_EQ(gradient_norm(layout(), record), 5.0);
}

TEST(GradientNorm, OfRoundedNumbersGoesByTheirScales) {
  StepRecord record;
  record.scales = {4, 2, 0};
  record.front = {9, SumKind::kInt16};
  record.header.micro_batches = 2;
  const SumLayout sums{10, record.front};
  record.sums = runtime::Buffer::zeroed(sums.bytes());
  const auto rounded = sums.parts_of(record.sums).rounded;
  rounded[4] = 3 * 2 * 16;
  rounded[6] = -4 * 2 * 4;
  EXPECT_DOUBLE_EQ(gradient_norm(layout(), record), 5.0);
}

}  // namespace
}  // namespace troupe::pipeline
