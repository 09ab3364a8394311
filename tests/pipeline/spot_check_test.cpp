#include "pipeline/steps/spot_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace troupe::pipeline {
namespace {

// 3 members of 2 replicas, one of them without micro-batches.
SpotChecks checks(std::uint64_t every) {
  return {every, 7, 4, 2, {0, 1, 2}, {0, 0, 1, 2, 3, 3, 3}};
}

TEST(SpotCheck, OneIterationOfEveryWindowHasOne) {
  for (const std::uint64_t every : {100U, 40U, 4U, 1U}) {
    const std::uint64_t window = std::max<std::uint64_t>(every / 4, 1);
    for (std::uint64_t first = 0; first < 50 * window; first += window) {
      int count = 0;
      for (std::uint64_t i = 0; i < window; ++i) count += checks(every).of(first + i) ? 1 : 0;
      EXPECT_EQ(count, 1) << "from iteration " << first << ", every " << every;
    }
  }
}

TEST(SpotCheck, OwnerIsWhoseMicroBatchItIsAndTheWitnessIsOnAnotherMember) {
  const SpotChecks all = checks(4);
  for (std::uint64_t iteration = 0; iteration < 1000; ++iteration) {
    const auto check = all.of(iteration);
    ASSERT_TRUE(check.has_value());
    EXPECT_EQ(check->owner, all.owners.at(check->micro_batch));
    EXPECT_LT(check->witness, 6U);
    EXPECT_NE(all.member_of(check->owner), all.member_of(check->witness));
  }
}

// Numbers of members that are left need not follow each other.
TEST(SpotCheck, OnlyThoseThatAreLeftTakePart) {
  SpotChecks left = checks(4);
  left.members = {0, 5, 9};
  left.owners = {0, 1, 10, 18, 19};
  std::set<std::uint32_t> witnesses;
  for (std::uint64_t iteration = 0; iteration < 1000; ++iteration) {
    const auto check = left.of(iteration);
    ASSERT_TRUE(check.has_value());
    EXPECT_EQ(check->owner, left.owners.at(check->micro_batch));
    EXPECT_NE(left.member_of(check->owner), left.member_of(check->witness));
    witnesses.insert(check->witness);
  }
  EXPECT_EQ(witnesses, (std::set<std::uint32_t>{0, 1, 10, 11, 18, 19}));
}

TEST(SpotCheck, SoonerOrLaterEverySlotMicroBatchAndReplicaIsDrawn) {
  std::set<std::uint32_t> slots, micro_batches, witnesses;
  for (std::uint64_t iteration = 0; iteration < 1000; ++iteration) {
    const auto check = checks(4).of(iteration);
    slots.insert(check->slot);
    micro_batches.insert(check->micro_batch);
    witnesses.insert(check->witness);
  }
  EXPECT_EQ(slots.size(), 4U);
  EXPECT_EQ(micro_batches.size(), 7U);
  EXPECT_EQ(witnesses.size(), 6U);
}

TEST(SpotCheck, ThereIsNoneAloneOrWhenNotWanted) {
  SpotChecks alone = checks(4);
  alone.members = {1};
  alone.owners = {2, 2, 3};
  for (std::uint64_t iteration = 0; iteration < 100; ++iteration) {
    EXPECT_FALSE(alone.of(iteration));
    EXPECT_FALSE(checks(0).of(iteration));
    EXPECT_FALSE(SpotChecks{}.of(iteration));
  }
}

}  // namespace
}  // namespace troupe::pipeline
