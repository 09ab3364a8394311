#include "pipeline/steps/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;

// For members 4, 2, 6 and 0 in this order, from step 10 on.
View view(std::vector<std::uint64_t> reached = {10, 10, 10, 10}) {
  View view;
  view.id = {1, 3};
  view.first_step = 10;
  view.ring = {4, 2, 6, 0};
  view.reached = std::move(reached);
  view.owners = {8, 9, 4, 12, 0, 1};
  return view;
}

TEST(ViewId, LaterTermsAreGreaterThanLaterNumbers) {
  EXPECT_LT((ViewId{1, 2}), (ViewId{1, 3}));
  EXPECT_LT((ViewId{1, 9}), (ViewId{2, 1}));
  EXPECT_LT(ViewId{}, (ViewId{1, 1}));
  EXPECT_EQ((ViewId{2, 3}), (ViewId{2, 3}));
  EXPECT_EQ(text_of(ViewId{2, 13}), "2.13");
}

TEST(View, KnowsWhereItsMembersStand) {
  const View each = view();
  EXPECT_EQ(each.position_of(4), 0U);
  EXPECT_EQ(each.position_of(0), 3U);
  EXPECT_TRUE(each.has(6));
  EXPECT_FALSE(each.has(1));
  EXPECT_DEATH(static_cast<void>(each.position_of(1)), "a member of the View");
}

TEST(View, MemberLagsThatLacksTheStepBeforeTheFirst) {
  const View each = view({9, 10, 9, 10});
  EXPECT_TRUE(each.lags(4));
  EXPECT_FALSE(each.lags(2));
  EXPECT_TRUE(each.lags(6));
  EXPECT_FALSE(each.lags(0));
  for (const std::uint32_t member : view().ring) EXPECT_FALSE(view().lags(member));
}

TEST(View, IsLedByTheLeastNumberWhereverItStands) {
  EXPECT_EQ(view().leader(), 0U);
  View each = view();
  each.ring.pop_back();
  EXPECT_EQ(each.leader(), 2U);
  EXPECT_DEATH(static_cast<void>(View{}.leader()), "a View has members");
}

// Members have two replicas each; of ten iterations the last one is short.
TEST(View, SharesOutEachMicroBatchOfAnIterationOnceAndHasOneWitnessOfACheck) {
  SpotChecks run;
  run.every = 1;
  run.slots = 1;
  run.replicas_per_member = 2;
  run.short_iteration = {10, 4};
  for (std::uint64_t iteration = 0; iteration < 20; ++iteration) {
    std::vector<std::uint32_t> all;
    std::size_t witnesses = 0;
    for (std::uint32_t replica = 0; replica < 14; ++replica) {
      const ReplicaWork work = work_of(view(), run, iteration, replica);
      all.insert(all.end(), work.own.begin(), work.own.end());
      ASSERT_TRUE(work.check);
      std::vector<std::uint32_t> computed = work.own;
      if (work.is_witness) computed.push_back(work.check->micro_batch);
      EXPECT_EQ(work.micro_batches(), computed);
      witnesses += work.is_witness;
    }
    std::sort(all.begin(), all.end());
    std::vector<std::uint32_t> each(iteration % 10 == 9 ? 4 : 6);
    std::iota(each.begin(), each.end(), 0U);
    EXPECT_EQ(all, each) << iteration;
    EXPECT_EQ(witnesses, 1U) << iteration;
  }
}

// All find the same checks, so that the order of the ring must not matter.
TEST(View, ChecksAreOfItsMembersInOrderAndOfItsOwners) {
  SpotChecks run;
  run.every = 4;
  run.seed = 7;
  run.slots = 3;
  run.replicas_per_member = 2;
  run.members = {0, 1, 2, 3, 4, 5, 6};
  run.owners = {0, 13};
  const SpotChecks checks = view().checks(run, 5);
  EXPECT_THAT(checks.members, ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(checks.owners, view().owners);
  EXPECT_EQ(checks.every, 4U);
  EXPECT_EQ(checks.seed, 7U);
  EXPECT_EQ(checks.slots, 3U);
  EXPECT_EQ(checks.replicas_per_member, 2U);
}

TEST(View, EachThatHasTheStepGivesItToOneThatLacksIt) {
  View each = view({9, 10, 9, 10});
  EXPECT_THAT(each.gives_to(2), ElementsAre(4));
  EXPECT_THAT(each.gives_to(0), ElementsAre(6));
  EXPECT_THAT(each.gives_to(4), ElementsAre());
  EXPECT_THAT(each.gives_to(6), ElementsAre());
  // A newcomer has its lessons from its teacher.
  each.newcomers = {4};
  EXPECT_THAT(each.gives_to(2), ElementsAre(6));
  EXPECT_THAT(each.gives_to(0), ElementsAre());
}

TEST(View, ThoseThatWereGivenTheStepGiveItToAsManyOthers) {
  const View each = view({9, 9, 9, 10});
  EXPECT_THAT(each.gives_to(0), ElementsAre(4, 2));
  EXPECT_THAT(each.gives_to(4), ElementsAre(6));
  EXPECT_THAT(each.gives_to(2), ElementsAre());
}

TEST(View, RowWithoutTheStepIsGivenItOnce) {
  View each = view({10, 10, 9, 9});
  each.rows = {0, 2};
  EXPECT_THAT(each.gives_to(4), ElementsAre(6));
  EXPECT_THAT(each.gives_to(2), ElementsAre());
  EXPECT_THAT(each.gives_to(6), ElementsAre(0));
  // The last row goes on at the beginning of the ring.
  each.rows = {1, 3};
  EXPECT_THAT(each.gives_to(2), ElementsAre(6));
  EXPECT_THAT(each.gives_to(4), ElementsAre(0));
}

// Whichever members have it, and in whichever rows: after a few sendings of each all have it, and
// nobody was sent it twice.
TEST(View, AllGetTheStepThatOneHas) {
  const std::vector<std::vector<std::uint32_t>> rows = {{}, {0, 3, 5}, {1, 4, 6, 7}};
  for (unsigned bits = 1; bits < 256; ++bits) {
    for (const auto& firsts : rows) {
      View each;
      each.first_step = 10;
      each.rows = firsts;
      std::set<std::uint32_t> have;
      for (std::uint32_t member = 0; member < 8; ++member) {
        const bool has_it = (bits >> member & 1U) != 0;
        each.ring.push_back(member);
        each.reached.push_back(has_it ? 10 : 9);
        if (has_it) have.insert(member);
      }
      std::set<std::uint32_t> giving = have;
      for (int sendings = 0; !giving.empty(); ++sendings) {
        ASSERT_LE(sendings, 5);
        std::set<std::uint32_t> given;
        for (const std::uint32_t giver : giving) {
          for (const std::uint32_t member : each.gives_to(giver)) {
            EXPECT_TRUE(have.insert(member).second) << bits << " " << member;
            given.insert(member);
          }
        }
        giving = std::move(given);
      }
      EXPECT_EQ(have.size(), 8U) << bits;
    }
  }
}

}  // namespace
}  // namespace troupe::pipeline
