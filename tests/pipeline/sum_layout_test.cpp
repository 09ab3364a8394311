#include "pipeline/steps/sum_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "pipeline/steps/buckets.h"
#include "pipeline/steps/reduction_format.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

TEST(SumLayout, ExactSumsAreIntegersThroughout) {
  const StateExample example = state_example();
  const auto& contributions = example.layout.of(model::SlotKind::kG);
  const SumLayout layout = sum_layout(contributions, SumKind::kInt64);
  EXPECT_EQ(layout, (SumLayout{contributions.size, {}}));
  EXPECT_EQ(layout.bytes(), static_cast<std::size_t>(contributions.size) * 8);
  EXPECT_EQ(layout.offset(3), 24);
}

TEST(SumLayout, GradientsAreOfTheirKindAndTheRestIsExact) {
  const StateExample example = state_example();
  for (const model::SlotKind slot :
       {model::SlotKind::kDReal, model::SlotKind::kDFake, model::SlotKind::kG}) {
    const auto& contributions = example.layout.of(slot);
    for (const SumKind kind : {SumKind::kFloat32, SumKind::kInt16}) {
      const SumLayout layout = sum_layout(contributions, kind);
      EXPECT_GT(layout.front.size, 0);
      EXPECT_EQ(layout.front.kind, kind);
      EXPECT_EQ(layout.floats() + layout.rounded(), layout.front.size);
      for (const auto& tensor : contributions.tensors) {
        const bool gradient =
            tensor.role == model::ContributionTensor::Role::kGeneratorGradient ||
            tensor.role == model::ContributionTensor::Role::kDiscriminatorGradient;
        EXPECT_EQ(tensor.offset < layout.front.size, gradient) << tensor.name;
      }
    }
  }
}

TEST(SumLayout, IntegersBehindAnOddNumberOfFloatsAreAligned) {
  const SumLayout layout{8, {5, SumKind::kFloat32}};
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

TEST(SumLayout, IntegersBehindRoundedNumbersAreAligned) {
  for (const std::int64_t front : {4, 5, 6, 7, 8}) {
    const SumLayout layout{front + 3, {front, SumKind::kInt16}};
    EXPECT_EQ(layout.offset(front - 1), static_cast<std::size_t>(2 * (front - 1)));
    EXPECT_EQ(layout.offset(front), front == 4 ? 8 : 16) << front;
    runtime::Buffer sums = runtime::Buffer::zeroed(layout.bytes());
    const MutableSums parts = layout.parts_of(sums);
    parts.rounded.back() = -3;
    parts.integers.front() = 7;
    EXPECT_TRUE(layout.floats_of(sums).empty());
    EXPECT_EQ(layout.rounded_of(sums)[static_cast<std::size_t>(front) - 1], -3);
    EXPECT_EQ(layout.integers_of(sums).size(), 3);
    EXPECT_EQ(layout.integers_of(sums)[0], 7);
  }
}

TEST(SumLayout, HoldsBucketsOfOneKindAlone) {
  const SumLayout layout{8, {5, SumKind::kInt16}};
  EXPECT_TRUE(layout.holds({0, 5, SumKind::kInt16}));
  EXPECT_TRUE(layout.holds({5, 3}));
  EXPECT_FALSE(layout.holds({0, 5, SumKind::kFloat32}));
  EXPECT_FALSE(layout.holds({0, 5}));
  EXPECT_FALSE(layout.holds({0, 6, SumKind::kInt16}));
  EXPECT_FALSE(layout.holds({5, 3, SumKind::kInt16}));
}

TEST(SumLayout, BucketsHoldEveryElementOnceAndNeverTwoKinds) {
  for (const std::uint32_t members : {1U, 2U, 5U, 64U}) {
    for (const SumLayout layout :
         {SumLayout{100'000, {99'000, SumKind::kFloat32}}, SumLayout{70, {}},
          SumLayout{70, {70, SumKind::kFloat32}}, SumLayout{300'001, {300'000, SumKind::kInt16}}}) {
      std::int64_t end = layout.elements;
      for (const Bucket& bucket : make_buckets(layout, 1 << 16, members)) {
        EXPECT_EQ(bucket.offset + bucket.size, end);
        const bool in_front = end <= layout.front.size;
        EXPECT_EQ(bucket.kind, in_front ? layout.front.kind : SumKind::kInt64);
        EXPECT_TRUE(layout.holds(bucket));
        EXPECT_LE(bucket.bytes(), 1 << 16);
        if (in_front) {
          EXPECT_EQ(bucket.offset % static_cast<std::int64_t>(kInt8Block), 0);
        } else {
          EXPECT_GE(bucket.offset, layout.front.size);
        }
        end = bucket.offset;
      }
      EXPECT_EQ(end, 0);
    }
  }
}

TEST(SumLayout, FloatsOfARingGiveEveryMemberAsManyHomes) {
  const SumLayout layout{1'000'000, {1'000'000, SumKind::kFloat32}};
  for (const std::uint32_t members : {2U, 3U, 8U}) {
    EXPECT_EQ(make_buckets(layout, 1 << 20, members).size() % members, 0) << members;
  }
}

}  // namespace
}  // namespace troupe::pipeline
