#include "pipeline/steps/sum_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "pipeline/steps/buckets.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

TEST(SumLayout, ExactSumsAreIntegersThroughout) {
  const StateExample example = state_example();
  const auto& contributions = example.layout.of(model::SlotKind::kG);
  const SumLayout layout = sum_layout(contributions, std::nullopt);
  EXPECT_EQ(layout, (SumLayout{contributions.size, 0}));
  EXPECT_EQ(layout.bytes(), static_cast<std::size_t>(contributions.size) * 8);
  EXPECT_EQ(layout.offset(3), 24);
}

TEST(SumLayout, OfALossyReductionGradientsAreFloatsAndTheRestIsExact) {
  const StateExample example = state_example();
  for (const model::SlotKind slot :
       {model::SlotKind::kDReal, model::SlotKind::kDFake, model::SlotKind::kG}) {
    const auto& contributions = example.layout.of(slot);
    const SumLayout layout = sum_layout(contributions, ReductionFormat::kBf16);
    EXPECT_GT(layout.floats, 0);
    for (const auto& tensor : contributions.tensors) {
      const bool gradient = tensor.role == model::ContributionTensor::Role::kGeneratorGradient ||
                            tensor.role == model::ContributionTensor::Role::kDiscriminatorGradient;
      EXPECT_EQ(tensor.offset < layout.floats, gradient) << tensor.name;
    }
  }
}

TEST(SumLayout, IntegersBehindAnOddNumberOfFloatsAreAligned) {
  const SumLayout layout{8, 5};
  EXPECT_EQ(layout.offset(4), 16);
  EXPECT_EQ(layout.offset(5), 24);
  EXPECT_EQ(layout.offset(6), 32);
  EXPECT_EQ(layout.bytes(), 48);
  runtime::Buffer sums = runtime::Buffer::zeroed(48);
  sums.mutable_as<float>()[4] = 1.5F;
  sums.mutable_as<std::int64_t>()[5] = 7;
  EXPECT_EQ(layout.floats_of(sums).size(), 5);
  EXPECT_EQ(layout.floats_of(sums)[4], 1.5F);
  EXPECT_EQ(layout.integers_of(sums).size(), 3);
  EXPECT_EQ(layout.integers_of(sums)[2], 7);
}

TEST(SumLayout, BucketsHoldEveryElementOnceAndNeverBothKinds) {
  for (const std::uint32_t members : {1U, 2U, 5U, 64U}) {
    for (const SumLayout layout : {SumLayout{100'000, 99'000}, SumLayout{70, 0}, SumLayout{70, 70},
                                   SumLayout{300'001, 300'000}}) {
      std::int64_t end = layout.elements;
      for (const Bucket& bucket : make_buckets(layout, 1 << 16, members)) {
        EXPECT_EQ(bucket.offset + bucket.size, end);
        EXPECT_EQ(bucket.floats, end <= layout.floats);
        EXPECT_LE(bucket.size * (bucket.floats ? 4 : 8), 1 << 16);
        if (bucket.floats) {
          EXPECT_EQ(bucket.offset % static_cast<std::int64_t>(kInt8Block), 0);
        } else {
          EXPECT_GE(bucket.offset, layout.floats);
        }
        end = bucket.offset;
      }
      EXPECT_EQ(end, 0);
    }
  }
}

TEST(SumLayout, FloatsOfARingGiveEveryMemberAsManyHomes) {
  const SumLayout layout{1'000'000, 1'000'000};
  for (const std::uint32_t members : {2U, 3U, 8U}) {
    EXPECT_EQ(make_buckets(layout, 1 << 20, members).size() % members, 0) << members;
  }
}

}  // namespace
}  // namespace troupe::pipeline
