#include "pipeline/steps/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/pipeline/membership_answers.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 3 members of 2 replicas and 8 micro-batches.
MembershipOptions three() {
  MembershipOptions options;
  options.term = 4;
  options.ring = {0, 2, 1};
  options.replicas_per_member = 2;
  options.weights = {1, 1, 1, 1, 1, 1};
  options.micro_batches = 8;
  return options;
}

TEST(Membership, BeginsWithAllInTheOrderOfTheirRing) {
  Membership membership(three());
  const View& view = membership.begin(7);
  EXPECT_EQ(view.id, (ViewId{4, 1}));
  EXPECT_EQ(view.first_step, 7U);
  EXPECT_THAT(view.ring, ElementsAre(0, 2, 1));
  EXPECT_THAT(view.reached, ElementsAre(7, 7, 7));
  EXPECT_THAT(view.owners, ElementsAre(0, 0, 1, 1, 2, 3, 4, 5));
  EXPECT_FALSE(membership.change());
  EXPECT_THAT(membership.not_halted(), ElementsAre());
}

TEST(Membership, GoesOnFromTheFurthestStepWhenAllThatAreLeftHaveHalted) {
  Membership membership(three());
  membership.begin(7);
  EXPECT_TRUE(membership.lose(0));
  EXPECT_EQ(membership.change(), (ViewId{4, 2}));
  EXPECT_THAT(membership.not_halted(), ElementsAre(1, 2));
  expect_none(membership.halted(2, {4, 2}, 11));
  EXPECT_THAT(membership.not_halted(), ElementsAre(1));
  const View view = expect_view(membership.halted(1, {4, 2}, 10));
  EXPECT_EQ(view.id, (ViewId{4, 2}));
  EXPECT_EQ(view.first_step, 11U);
  EXPECT_THAT(view.ring, ElementsAre(2, 1));
  EXPECT_THAT(view.reached, ElementsAre(11, 10));
  EXPECT_THAT(view.owners, ElementsAre(2, 3, 4, 5, 2, 3, 4, 5));
  EXPECT_EQ(membership.view().id, view.id);
  EXPECT_FALSE(membership.change());
}

// Iterations have 4 steps here. Who has made step 7 is lost before it has given its sums to the
// others, so they make it with what they have computed.
TEST(Membership, StepThatIsMadeAgainKeepsTheOwnersOfItsIteration) {
  MembershipOptions options = three();
  options.steps_per_iteration = 4;
  Membership membership(options);
  const std::vector<std::uint32_t> before = membership.begin(0).owners;
  membership.share_anew({1, 1, 9, 9, 1, 1});
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {4, 2}, 1));
  const View shared = expect_view(membership.halted(2, {4, 2}, 1));
  ASSERT_EQ(shared.owners_in(1), before);
  ASSERT_NE(shared.owners_in(2), before);
  membership.share_anew({1, 1, 1, 1, 1, 1});
  expect_none(membership.halted(0, {4, 3}, 7));
  expect_none(membership.halted(2, {4, 3}, 7));
  const View next = expect_view(membership.halted(1, {4, 3}, 8));
  EXPECT_EQ(next.owners_in(1), before);
  EXPECT_EQ(next.owners_in(2), shared.owners_in(2));
  membership.lose(1);
  expect_none(membership.halted(0, {4, 4}, 7));
  const View last = expect_view(membership.halted(2, {4, 4}, 7));
  EXPECT_EQ(last.first_step, 7U);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool is_left = before[i] / options.replicas_per_member != 1;
    if (is_left) {
      EXPECT_EQ(last.owners_in(1)[i], before[i]) << i;
    }
  }
}

TEST(Membership, ReplicaThatNobodyHasMeasuredWeighsAsTheOthersInTheMean) {
  MembershipOptions options = three();
  options.weights = {100, 500, 900, 0, 1000, 1000, 1000, 1000};
  Membership membership(options);
  membership.weights().weigh_as_others(0);
  EXPECT_THAT(membership.weights().all(), ElementsAre(900, 500, 900, 0, 1000, 1000, 1000, 1000));
  membership.weights().weigh_as_others(3);
  EXPECT_EQ(membership.weights().all()[3], 0U) << "it shall compute nothing";
}

// Iterations have 4 steps here.
TEST(Membership, TellsHowManyMicroBatchesOfTheIterationUnderWayOthersTakeOver) {
  MembershipOptions options = three();
  options.weights = {1, 1, 1, 1, 1, 1, 1, 1};
  options.steps_per_iteration = 4;
  options.end_step = 40;
  Membership membership(options);
  membership.begin(0);
  membership.lose(0);
  expect_none(membership.halted(1, {4, 2}, 7));
  expect_view(membership.halted(2, {4, 2}, 6), 4);
  // A newcomer takes none of what may have been begun.
  membership.admit(3);
  for (const std::uint32_t member : {1, 2}) expect_none(membership.halted(member, {4, 3}, 7));
  expect_view(membership.halted(3, {4, 3}, 5), 0);
  // In iteration 2 it still has none, in iteration 3 it has its share.
  const auto owned_by_three = [&](std::uint64_t iteration) {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(membership.view().owners_in(iteration),
                              [](std::uint32_t owner) { return owner / 2 == 3; }));
  };
  const std::uint32_t share = owned_by_three(3);
  ASSERT_EQ(owned_by_three(2), 0U);
  ASSERT_GT(share, 0U);
  Membership later = membership;
  membership.lose(3);
  expect_none(membership.halted(1, {4, 4}, 11));
  expect_view(membership.halted(2, {4, 4}, 11), 0);
  later.lose(3);
  expect_none(later.halted(1, {4, 4}, 12));
  expect_view(later.halted(2, {4, 4}, 12), share);
}

TEST(Membership, NothingIsTakenOverWhenAllStepsAreMade) {
  MembershipOptions options = three();
  options.end_step = 9;
  Membership membership(options);
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  expect_view(membership.halted(1, {4, 2}, 8), 0);
}

TEST(Membership, LossDuringAChangeBeginsItAnew) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  EXPECT_TRUE(membership.lose(1));
  EXPECT_EQ(membership.change(), (ViewId{4, 3}));
  expect_none(membership.halted(2, {4, 2}, 9));
  EXPECT_THAT(membership.not_halted(), ElementsAre(2)) << "its answer was to another change";
  const View view = expect_view(membership.halted(2, {4, 3}, 9));
  EXPECT_THAT(view.ring, ElementsAre(2));
  EXPECT_THAT(view.owners, testing::Each(testing::AnyOf(4, 5)));
}

TEST(Membership, OneIsLostOnceAndTheLastLeavesNobodyToHalt) {
  Membership membership(three());
  membership.begin(7);
  EXPECT_TRUE(membership.lose(0));
  EXPECT_FALSE(membership.lose(0));
  EXPECT_EQ(membership.change(), (ViewId{4, 2})) << "the second time was none";
  EXPECT_FALSE(membership.lose(9)) << "there never was such a member";
  EXPECT_TRUE(membership.lose(1));
  EXPECT_TRUE(membership.lose(2));
  EXPECT_FALSE(membership.change());
  EXPECT_THAT(membership.not_halted(), ElementsAre());
  EXPECT_THAT(membership.present(), ElementsAre());
}

TEST(Membership, AnswersOfThoseThatAreLostOrToNoChangeAreLetGo) {
  Membership membership(three());
  membership.begin(7);
  expect_none(membership.halted(1, {4, 1}, 7));
  membership.lose(0);
  expect_none(membership.halted(0, {4, 2}, 90));
  expect_none(membership.halted(1, {4, 3}, 90));
  expect_none(membership.halted(1, {5, 2}, 90));
  EXPECT_THAT(membership.not_halted(), ElementsAre(1, 2));
}

TEST(Membership, AnswersThatCannotBeRightNameTheMember) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_refused(membership.halted(2, {4, 2}, 6),
                 "member.2 would make step 6 next, although it has made those before 7");
  EXPECT_THAT(membership.not_halted(), ElementsAre(1, 2));
}

TEST(Membership, WhoLacksMoreThanAStepIsLeftBehindAndTheOthersGoOn) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  const Answer answer = membership.halted(1, {4, 2}, 7);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->view);
  EXPECT_THAT(answer->left_behind, ElementsAre(1));
  EXPECT_TRUE(membership.lose(1));
  EXPECT_EQ(expect_view(membership.halted(2, {4, 3}, 9)).first_step, 9U);
}

MembershipOptions three_of_five() {
  MembershipOptions options = three();
  options.weights.resize(10, 1);
  options.steps_per_iteration = 4;
  return options;
}

TEST(Membership, WhoJoinsComputesFromAnIterationOnThatNobodyHasBegun) {
  Membership membership(three_of_five());
  const View first = membership.begin(7);
  EXPECT_THAT(first.owners, testing::Each(testing::Lt(6U))) << "those that may join are not there";
  membership.admit(4);
  EXPECT_THAT(membership.not_halted(), ElementsAre(0, 1, 2, 4));
  for (const std::uint32_t member : {0, 1, 2}) {
    expect_none(membership.halted(member, {4, 2}, 22 - member % 2));
  }
  const View view = expect_view(membership.halted(4, {4, 2}, 15));
  EXPECT_EQ(view.first_step, 22U) << "that of those who have it from themselves";
  EXPECT_THAT(view.ring, ElementsAre(0, 2, 1, 4));
  EXPECT_THAT(view.newcomers, ElementsAre(4));
  EXPECT_THAT(view.reached, ElementsAre(22, 22, 22, 15)) << "member 1 has begun what it lacks";
  EXPECT_FALSE(view.lags(4)) << "it is taught";
  // Iterations 5 and 6 may be under way.
  for (const std::uint64_t iteration : {5, 6}) EXPECT_EQ(view.owners_in(iteration), first.owners);
  for (const std::uint64_t iteration : {7, 8, 1000}) {
    EXPECT_THAT(view.owners_in(iteration), testing::Contains(8));
  }
  EXPECT_THAT(membership.present(), ElementsAre(0, 1, 2, 4));
}

// Two iterations may have been begun, in one of which the newcomer is to compute.
TEST(Membership, LossBehindAJoinKeepsWhatEachIterationWasGivenTo) {
  Membership membership(three_of_five());
  membership.begin(0);
  membership.admit(3);
  for (const std::uint32_t member : {0, 1, 2, 3}) (void)membership.halted(member, {4, 2}, 1);
  const View joined = membership.view();
  ASSERT_THAT(joined.owners_in(2), testing::Contains(testing::AnyOf(6, 7)));
  membership.lose(1);
  for (const std::uint32_t member : {0, 2}) (void)membership.halted(member, {4, 3}, 5);
  const View view = expect_view(membership.halted(3, {4, 3}, 5));
  for (const std::uint64_t iteration : {1, 2, 3}) {
    const auto &before = joined.owners_in(iteration), &after = view.owners_in(iteration);
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_TRUE(view.has(after[i] / 2)) << iteration;
      if (before[i] / 2 != 1) {
        EXPECT_EQ(after[i], before[i]) << iteration;
      }
    }
  }
  // And when the iterations before are over only the newest is of interest.
  membership.lose(2);
  (void)membership.halted(0, {4, 4}, 40);
  const View last = expect_view(membership.halted(3, {4, 4}, 40));
  EXPECT_TRUE(last.later.empty());
  EXPECT_THAT(last.owners, testing::Each(testing::AnyOf(0, 1, 6, 7)));
}

TEST(Membership, WhoIsLostWhileItJoinsLeavesTheOthersAsTheyWere) {
  Membership membership(three_of_five());
  const View first = membership.begin(7);
  membership.admit(4);
  expect_none(membership.halted(0, {4, 2}, 7));
  EXPECT_TRUE(membership.lose(4));
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {4, 3}, 7));
  const View view = expect_view(membership.halted(2, {4, 3}, 7));
  EXPECT_EQ(view.ring, first.ring);
  EXPECT_EQ(view.owners, first.owners);
  EXPECT_TRUE(view.newcomers.empty());
}

TEST(Membership, SharesOutAnewFromAnIterationOnThatNobodyHasBegun) {
  Membership membership(three_of_five());
  const View first = membership.begin(7);
  membership.share_anew({1, 1, 1, 1, 6, 6, 1, 1, 1, 1});
  EXPECT_EQ(membership.change(), (ViewId{4, 2}));
  EXPECT_THAT(membership.not_halted(), ElementsAre(0, 1, 2));
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {4, 2}, 22));
  const View view = expect_view(membership.halted(2, {4, 2}, 22));
  EXPECT_EQ(view.owners, first.owners);
  EXPECT_EQ(view.owners_in(6), first.owners) << "may be under way";
  EXPECT_THAT(view.owners_in(7), ElementsAre(0, 1, 4, 4, 4, 5, 5, 5));
  EXPECT_TRUE(view.newcomers.empty());
  // Once; and the weights stay for what comes later.
  membership.lose(0);
  expect_none(membership.halted(1, {4, 3}, 60));
  const View later = expect_view(membership.halted(2, {4, 3}, 60));
  EXPECT_TRUE(later.later.empty());
  EXPECT_THAT(later.owners, ElementsAre(2, 3, 4, 4, 4, 5, 5, 5));
}

TEST(Membership, MemberAboutToLeaveGetsNoWorkOfIterationsThatNobodyHasBegun) {
  Membership membership(three());
  const View first = membership.begin(0);
  membership.relieve(1);
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {4, 2}, 2));
  const View view = expect_view(membership.halted(2, {4, 2}, 2));
  EXPECT_EQ(view.ring, first.ring);
  EXPECT_EQ(view.owners_in(3), first.owners) << "may be under way";
  EXPECT_THAT(view.owners_in(4), testing::Each(testing::AnyOf(0, 1, 4, 5)));
  // The others take nothing over when it goes.
  membership.lose(1);
  expect_none(membership.halted(0, {4, 3}, 16));
  const auto left = membership.halted(2, {4, 3}, 16);
  ASSERT_TRUE(left.ok() && left->view);
  EXPECT_EQ(left->taken_over, 0U);
  EXPECT_EQ(left->view->owners, view.owners_in(4));
  EXPECT_THAT(membership.weights().relieved(), ElementsAre());
}

TEST(Membership, MemberThatStaysAfterAllGetsWorkAgain) {
  Membership membership(three());
  membership.begin(0);
  membership.relieve(1);
  membership.lose(0);
  expect_none(membership.halted(1, {4, 3}, 2));
  const View alone = expect_view(membership.halted(2, {4, 3}, 2));
  EXPECT_THAT(alone.owners_in(4), testing::Each(testing::AnyOf(4, 5)));
  membership.weights().keep(1);
  membership.share_anew({1, 1, 1, 1, 1, 1});
  expect_none(membership.halted(1, {4, 4}, 16));
  const View view = expect_view(membership.halted(2, {4, 4}, 16));
  EXPECT_THAT(view.later.back().owners, testing::IsSupersetOf({2, 3, 4, 5}));
}

TEST(Membership, MemberThatLeavesHandsItsWorkToOthersThatHaveNone) {
  MembershipOptions options = three();
  options.weights = {1, 1, 0, 0, 0, 0};
  Membership membership(options);
  membership.begin(0);
  membership.relieve(0);
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {4, 2}, 2));
  const View view = expect_view(membership.halted(2, {4, 2}, 2));
  EXPECT_THAT(view.later.back().owners, testing::Each(testing::Ge(2U)));
}

TEST(Membership, LossWhileItSharesOutAnewDoesNotForgetToDoSo) {
  Membership membership(three());
  membership.begin(0);
  membership.share_anew({1, 1, 6, 6, 1, 1});
  expect_none(membership.halted(0, {4, 2}, 2));
  membership.lose(2);
  expect_none(membership.halted(0, {4, 3}, 2));
  const View view = expect_view(membership.halted(1, {4, 3}, 2));
  EXPECT_THAT(view.owners, testing::Not(view.owners_in(4)));
  EXPECT_THAT(view.owners_in(4), ElementsAre(0, 1, 2, 2, 2, 3, 3, 3));
}

TEST(Membership, WithTooFewItWaitsForOthersToJoin) {
  MembershipOptions options = three_of_five();
  options.min_members = 3;
  Membership membership(options);
  membership.begin(7);
  EXPECT_FALSE(membership.is_short());
  membership.lose(0);
  EXPECT_TRUE(membership.is_short());
  for (const std::uint32_t member : {1, 2}) expect_none(membership.halted(member, {4, 2}, 9));
  EXPECT_THAT(membership.not_halted(), ElementsAre());
  membership.lose(1);
  expect_none(membership.halted(2, {4, 3}, 9));
  membership.admit(3);
  EXPECT_TRUE(membership.is_short());
  for (const std::uint32_t member : {2, 3}) expect_none(membership.halted(member, {4, 4}, 9));
  membership.admit(4);
  EXPECT_FALSE(membership.is_short());
  for (const std::uint32_t member : {2, 3}) expect_none(membership.halted(member, {4, 5}, 9));
  const View view = expect_view(membership.halted(4, {4, 5}, 9));
  EXPECT_THAT(view.ring, ElementsAre(2, 3, 4));
  EXPECT_THAT(view.newcomers, ElementsAre(3, 4));
  EXPECT_FALSE(membership.is_short());
}

TEST(Membership, TooFewHandOverTheLastSumsWhenNothingIsLeftToMake) {
  MembershipOptions options = three();
  options.min_members = 3;
  options.end_step = 9;
  Membership membership(options);
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  const View view = expect_view(membership.halted(1, {4, 2}, 8));
  EXPECT_THAT(view.gives_to(2), ElementsAre(1));
  EXPECT_TRUE(view.lags(1));
}

// Training ends early, and those that are left had halted before anybody said so.
TEST(Membership, AnEarlyEndIsOneTooFewMembersNeedNotWaitAt) {
  MembershipOptions options = three();
  options.min_members = 3;
  options.end_step = 90;
  Membership membership(options);
  membership.begin(7);
  EXPECT_FALSE(membership.end_at(9).view) << "nothing changes";
  EXPECT_FALSE(membership.end_at(90).view);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  Membership later = membership;
  expect_none(membership.halted(1, {4, 2}, 8));
  const Membership::Answer answer = membership.end_at(9);
  ASSERT_TRUE(answer.view);
  EXPECT_THAT(answer.view->gives_to(2), ElementsAre(1));
  EXPECT_TRUE(answer.view->lags(1));
  EXPECT_EQ(answer.taken_over, 0U);
  // The end may be known first.
  EXPECT_FALSE(later.end_at(9).view);
  EXPECT_TRUE(expect_view(later.halted(1, {4, 2}, 8)).lags(1));
}

// It was told of a View, but its giver was lost before it had the sums.
TEST(Membership, LaggardThatNobodyIsLeftToHelpMakesTheStepItself) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  expect_view(membership.halted(1, {4, 2}, 8));
  membership.lose(2);
  const View view = expect_view(membership.halted(1, {4, 3}, 8));
  EXPECT_EQ(view.first_step, 8U);
  EXPECT_THAT(view.gives_to(1), ElementsAre());
}

TEST(Membership, MembersThatComputeNothingDoSoWhenNobodyElseIsLeft) {
  MembershipOptions options = three();
  options.weights = {0, 0, 1, 1, 0, 0};
  Membership membership(options);
  EXPECT_THAT(membership.begin(7).owners, testing::Each(testing::AnyOf(2, 3)));
  membership.lose(0);
  expect_none(membership.halted(1, {4, 2}, 7));
  EXPECT_THAT(expect_view(membership.halted(2, {4, 2}, 7)).owners,
              testing::Each(testing::AnyOf(2, 3)));
  membership.lose(1);
  EXPECT_THAT(expect_view(membership.halted(2, {4, 3}, 7)).owners,
              ElementsAre(4, 5, 4, 5, 4, 5, 4, 5));
}

TEST(Membership, GoesOnFromTheViewOfAnEarlierTerm) {
  Membership before(three());
  before.begin(7);
  before.lose(1);
  expect_none(before.halted(0, {4, 2}, 9));
  const View known = expect_view(before.halted(2, {4, 2}, 9));

  MembershipOptions options = three();
  options.term = 5;
  Membership after(options);
  ASSERT_TRUE(after.go_on_from(known).ok());
  EXPECT_EQ(after.change(), (ViewId{5, 1}));
  EXPECT_THAT(after.not_halted(), ElementsAre(0, 2));
  expect_none(after.halted(0, {5, 1}, 12));
  const View view = expect_view(after.halted(2, {5, 1}, 11));
  EXPECT_EQ(view.id, (ViewId{5, 1}));
  EXPECT_EQ(view.first_step, 12U);
  EXPECT_THAT(view.ring, ElementsAre(0, 2));
  EXPECT_THAT(view.reached, ElementsAre(12, 11));
  EXPECT_EQ(view.owners, known.owners) << "nobody computes anything anew";
}

TEST(Membership, WhoHasNotComeBackIsLostFromThatView) {
  Membership before(three());
  const View known = before.begin(7);
  MembershipOptions options = three();
  options.term = 5;
  Membership after(options);
  ASSERT_TRUE(after.go_on_from(known).ok());
  EXPECT_TRUE(after.lose(2));
  EXPECT_EQ(after.change(), (ViewId{5, 2}));
  expect_none(after.halted(0, {5, 2}, 8));
  EXPECT_THAT(expect_view(after.halted(1, {5, 2}, 8)).ring, ElementsAre(0, 1));
}

TEST(Membership, ViewThatThisRunCannotHaveHadIsRefused) {
  Membership before(three());
  const View known = before.begin(7);
  const auto refused = [&](const std::function<void(View&)>& change) {
    View view = known;
    change(view);
    MembershipOptions options = three();
    options.term = 5;
    return !Membership(options).go_on_from(view).ok();
  };
  EXPECT_FALSE(refused([](View&) {}));
  EXPECT_TRUE(refused([](View& view) { view.id.term = 5; }));
  EXPECT_TRUE(refused([](View& view) { view.ring.back() = 1000; }));
  EXPECT_TRUE(refused([](View& view) { view.ring.back() = 1U << 31U; })) << "2^31 x 2 is 0";
  EXPECT_TRUE(refused([](View& view) { view.owners.back() = 1000; }));
  EXPECT_TRUE(refused([](View& view) { view.owners.pop_back(); }));
  EXPECT_TRUE(refused([](View& view) { view.later.push_back({3, {0}}); }));
}

}  // namespace
}  // namespace troupe::pipeline
