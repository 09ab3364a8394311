// Changes of the View in which nobody is lost: members finish what they have begun.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "pipeline/steps/membership.h"
#include "tests/pipeline/membership_answers.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;

// Three members that make step 7 first, and one more that may join.
Membership three_and_one() {
  MembershipOptions options;
  options.ring = {0, 1, 2};
  options.weights = {1, 1, 1, 1};
  options.micro_batches = 6;
  options.steps_per_iteration = 4;
  Membership membership(options);
  membership.begin(7);
  return membership;
}

TEST(PlannedChange, ViewBeginsAtTheFirstStepThatNobodyHasBegun) {
  Membership membership = three_and_one();
  membership.admit(3);
  EXPECT_TRUE(membership.is_planned());
  expect_none(membership.halted(0, {1, 2}, 9, 11));
  expect_none(membership.halted(1, {1, 2}, 10, 10));
  expect_none(membership.halted(2, {1, 2}, 9, 10));
  const View view = expect_view(membership.halted(3, {1, 2}, 8));
  EXPECT_EQ(view.first_step, 11U);
  EXPECT_THAT(view.reached, ElementsAre(11, 11, 11, 8)) << "all but the newcomer make them";
  for (const std::uint32_t member : view.ring) {
    EXPECT_FALSE(view.lags(member)) << member;
    EXPECT_THAT(view.gives_to(member), ElementsAre()) << member;
  }
  // Iterations 2 and 3 may have been begun.
  EXPECT_EQ(view.owners_in(3), std::vector<std::uint32_t>({0, 0, 1, 1, 2, 2}));
  EXPECT_THAT(view.owners_in(4), testing::Contains(3));
  EXPECT_FALSE(fault_of(view));
}

TEST(PlannedChange, LikelyViewHasANewcomerWhereTheNextOneHasIt) {
  MembershipOptions options;
  options.term = 4;
  options.ring = {0, 2, 1};
  options.replicas_per_member = 2;
  options.weights.assign(10, 1);
  options.micro_batches = 8;
  Membership membership(options);
  membership.begin(7);
  EXPECT_THAT(membership.view_with(4).ring, ElementsAre(0, 2, 1, 4));
  membership.admit(4);
  EXPECT_THAT(membership.view_with(3).ring, ElementsAre(0, 2, 1, 3, 4));
  EXPECT_STREQ(fault_of(membership.view_with(3)), nullptr);
  for (const std::uint32_t member : {0, 1, 2}) {
    expect_none(membership.halted(member, {4, 2}, 7));
  }
  const View view = expect_view(membership.halted(4, {4, 2}, 7));
  EXPECT_THAT(view.ring, ElementsAre(0, 2, 1, 4));
}

// The first goes on when it has told how far it is, and the newcomer learns meanwhile.
TEST(PlannedChange, MembersThatTellAtDifferentTimesAreNotLeftBehind) {
  Membership membership = three_and_one();
  membership.admit(3);
  expect_none(membership.halted(0, {1, 2}, 7, 9));
  expect_none(membership.halted(1, {1, 2}, 9, 10));
  expect_none(membership.halted(3, {1, 2}, 9));
  const View view = expect_view(membership.halted(2, {1, 2}, 8, 10));
  EXPECT_EQ(view.first_step, 10U);
  EXPECT_THAT(view.reached, ElementsAre(10, 10, 10, 9));
}

// Lessons take a newcomer to step 11, and it makes 11 and 12 with the others before the View of the
// second change.
TEST(PlannedChange, NewcomerThatStillLearnsMakesWhatTheOthersHaveBegunWithIt) {
  Membership membership = three_and_one();
  membership.admit(3);
  for (const std::uint32_t member : {0, 1, 2}) {
    expect_none(membership.halted(member, {1, 2}, 10, 11));
  }
  expect_view(membership.halted(3, {1, 2}, 8));
  membership.share_anew({1, 1, 2, 1});
  EXPECT_TRUE(membership.is_planned());
  EXPECT_TRUE(membership.still_learns(3, 10));
  for (const std::uint32_t member : {0, 1, 2}) {
    expect_none(membership.halted(member, {1, 3}, 11, 13));
  }
  View view = expect_view(membership.halted(3, {1, 3}, 9));
  EXPECT_EQ(view.first_step, 13U);
  EXPECT_THAT(view.newcomers, ElementsAre(3));
  EXPECT_TRUE(membership.still_learns(3, 10));
  EXPECT_FALSE(membership.still_learns(3, 11)) << "nothing more is sent to it";

  // So it gets the step that it lacks when another is lost as each that lags does.
  membership.lose(2);
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {1, 4}, 13));
  view = expect_view(membership.halted(3, {1, 4}, 12));
  EXPECT_THAT(view.newcomers, ElementsAre());
  EXPECT_TRUE(view.lags(3));
}

// It has been told a planned View, and begins nothing before that.
TEST(PlannedChange, NewcomerMayBeFarBehindAPlannedViewWhenTheNextChangeComes) {
  Membership membership = three_and_one();
  membership.admit(3);
  for (const std::uint32_t member : {0, 1, 2}) {
    expect_none(membership.halted(member, {1, 2}, 200, 202));
  }
  expect_view(membership.halted(3, {1, 2}, 100));
  membership.share_anew({1, 1, 2, 1});
  expect_none(membership.halted(3, {1, 3}, 101));
  for (const std::uint32_t member : {0, 1}) {
    expect_none(membership.halted(member, {1, 3}, 201, 202));
  }
  expect_view(membership.halted(2, {1, 3}, 201, 202));
  membership.share_anew({1, 1, 1, 1});
  expect_none(membership.halted(3, {1, 4}, 102, 202));
  expect_refused(membership.halted(0, {1, 4}, 201, 210), "has begun what is before step 210");
}

TEST(PlannedChange, NewcomerThatStillLearnsWhenAnotherIsLostIsTaughtUntilTheNextView) {
  Membership membership = three_and_one();
  membership.admit(3);
  for (const std::uint32_t member : {0, 1, 2}) {
    expect_none(membership.halted(member, {1, 2}, 10, 11));
  }
  expect_view(membership.halted(3, {1, 2}, 8));
  membership.lose(2);
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {1, 3}, 11));
  const View view = expect_view(membership.halted(3, {1, 3}, 9));
  EXPECT_THAT(view.newcomers, ElementsAre(3));
  EXPECT_TRUE(membership.still_learns(3, view.first_step - 1));
  EXPECT_FALSE(membership.still_learns(3, view.first_step));
}

// Member 0 has finished what is before the planned View, and has taken that; 1 still lacks a step.
TEST(PlannedChange, LossWhileTheLastStepsBeforeItAreFinishedIsAnOrdinaryOne) {
  Membership membership = three_and_one();
  membership.share_anew({1, 1, 2, 1});
  expect_none(membership.halted(0, {1, 2}, 9, 10));
  expect_none(membership.halted(1, {1, 2}, 9, 9));
  EXPECT_EQ(expect_view(membership.halted(2, {1, 2}, 9, 11)).first_step, 11U);
  membership.lose(2);
  EXPECT_FALSE(membership.is_planned());
  expect_none(membership.halted(0, {1, 3}, 11));
  const View view = expect_view(membership.halted(1, {1, 3}, 10));
  EXPECT_EQ(view.first_step, 11U);
  EXPECT_THAT(view.reached, ElementsAre(11, 10));
  EXPECT_THAT(view.gives_to(0), ElementsAre(1));
  EXPECT_TRUE(view.lags(1));
}

// Members 0, 1 and 2, of which 1 has handed over its work; the View without it begins at step 14.
Membership without_one() {
  Membership membership = three_and_one();
  membership.relieve(1);
  for (const std::uint32_t member : {0, 1, 2}) (void)membership.halted(member, {1, 2}, 7);
  membership.part(1);
  EXPECT_TRUE(membership.is_planned());
  EXPECT_EQ(membership.change(), (ViewId{1, 3}));
  EXPECT_THAT(membership.halting(), ElementsAre(0, 1, 2));
  EXPECT_THAT(membership.participants(), ElementsAre(0, 2));
  expect_none(membership.halted(0, {1, 3}, 13, 13));
  expect_none(membership.halted(2, {1, 3}, 13, 13));
  return membership;
}

TEST(PlannedChange, MemberThatPartsMakesWhatIsBeforeTheViewWithoutIt) {
  Membership membership = without_one();
  const auto answer = membership.halted(1, {1, 3}, 13, 14);
  ASSERT_TRUE(answer.ok() && answer->view);
  EXPECT_THAT(answer->view->ring, ElementsAre(0, 2));
  EXPECT_EQ(answer->view->first_step, 14U);
  EXPECT_THAT(answer->view->reached, ElementsAre(14, 14));
  EXPECT_EQ(answer->parted, 1U);
  EXPECT_EQ(answer->taken_over, 0U);
  EXPECT_THAT(membership.present(), ElementsAre(0, 2));
  EXPECT_THAT(membership.weights().relieved(), ElementsAre());
  membership.entered(0, {1, 3});
  membership.entered(2, {1, 2});
  EXPECT_TRUE(membership.is_awaited(1));
  membership.entered(2, {1, 3});
  EXPECT_FALSE(membership.is_awaited(1));
  EXPECT_FALSE(membership.lose(1)) << "nobody waits for it";
  EXPECT_FALSE(membership.change());
}

TEST(PlannedChange, ChangesThatFollowWaitForNothingOfAMemberThatHasParted) {
  Membership membership = without_one();
  expect_view(membership.halted(1, {1, 3}, 13, 13));
  membership.admit(3);
  expect_none(membership.halted(0, {1, 4}, 13, 14));
  expect_none(membership.halted(3, {1, 4}, 12));
  EXPECT_THAT(expect_view(membership.halted(2, {1, 4}, 13, 13)).ring, ElementsAre(0, 2, 3));
  // The newcomer needs nothing of it.
  membership.entered(0, {1, 3});
  EXPECT_TRUE(membership.is_awaited(1));
  membership.entered(2, {1, 4});
  EXPECT_FALSE(membership.is_awaited(1));
}

TEST(PlannedChange, LossOfAMemberThatOthersWaitForIsAnOrdinaryOne) {
  Membership membership = without_one();
  expect_view(membership.halted(1, {1, 3}, 13, 14));
  EXPECT_TRUE(membership.lose(1));
  EXPECT_EQ(membership.change(), (ViewId{1, 4}));
  EXPECT_FALSE(membership.is_planned());
  expect_none(membership.halted(0, {1, 4}, 13));
  const View view = expect_view(membership.halted(2, {1, 4}, 13));
  EXPECT_EQ(view.first_step, 13U);
  EXPECT_THAT(view.ring, ElementsAre(0, 2));
}

TEST(PlannedChange, LossOfAnotherEndsTheWaitForAMemberThatHasParted) {
  Membership membership = without_one();
  expect_view(membership.halted(1, {1, 3}, 13, 14));
  membership.lose(2);
  EXPECT_TRUE(membership.is_awaited(1)) << "nobody has forgotten yet what it waits for";
  expect_view(membership.halted(0, {1, 4}, 13));
  EXPECT_FALSE(membership.is_awaited(1));
}

TEST(PlannedChange, MemberThatIsToPartStaysWhereTheChangeIsNoPlannedOne) {
  Membership membership = without_one();
  membership.lose(2);
  EXPECT_THAT(membership.participants(), ElementsAre(0, 1));
  expect_none(membership.halted(0, {1, 4}, 13));
  EXPECT_THAT(expect_view(membership.halted(1, {1, 4}, 13)).ring, ElementsAre(0, 1));
  EXPECT_THAT(membership.weights().relieved(), ElementsAre(1)) << "it gets no work";
}

// Both that are left are as far as they were before the planned View was told.
TEST(PlannedChange, ViewThatNobodyHasTakenMayBeFollowedByAnEarlierStep) {
  Membership membership = three_and_one();
  membership.share_anew({1, 1, 2, 1});
  for (const std::uint32_t member : {0, 1}) {
    expect_none(membership.halted(member, {1, 2}, 9, 11));
  }
  expect_view(membership.halted(2, {1, 2}, 9, 11));
  membership.lose(2);
  expect_none(membership.halted(0, {1, 3}, 9));
  const View view = expect_view(membership.halted(1, {1, 3}, 9));
  EXPECT_EQ(view.first_step, 9U);
  membership.lose(1);
  expect_refused(membership.halted(0, {1, 4}, 8), "member.0 would make step 8 next");
}

TEST(PlannedChange, LossOfOneThatJoinsLeavesItPlannedAndThatOfAMemberDoesNot) {
  Membership membership = three_and_one();
  membership.admit(3);
  membership.lose(3);
  EXPECT_TRUE(membership.is_planned());
  membership.lose(1);
  EXPECT_FALSE(membership.is_planned());
  membership.share_anew({1, 1, 2, 1});
  EXPECT_FALSE(membership.is_planned()) << "the loss belongs to the same change";
  expect_none(membership.halted(0, *membership.change(), 9));
  expect_view(membership.halted(2, *membership.change(), 9));
  membership.share_anew({1, 1, 1, 1});
  EXPECT_TRUE(membership.is_planned());
}

TEST(PlannedChange, MoreStepsThanCanBeUnderWayAreRefused) {
  Membership membership = three_and_one();
  membership.admit(3);
  expect_refused(membership.halted(0, {1, 2}, 9, 100),
                 "member.0 has begun what is before step 100");
}

TEST(PlannedChange, AllStepsOfTheNextIterationMayHaveBegun) {
  MembershipOptions options;
  options.ring = {0, 1};
  options.weights = {1, 1};
  options.micro_batches = 2;
  options.steps_per_iteration = 9;
  Membership membership(options);
  membership.begin(9);
  membership.share_anew({1, 2});
  expect_refused(membership.halted(0, {1, 2}, 9, 28), "has begun what is before step 28");
  expect_none(membership.halted(0, {1, 2}, 9, 27));
  EXPECT_EQ(expect_view(membership.halted(1, {1, 2}, 9, 9)).first_step, 27u);
}

TEST(PlannedChange, NextCoordinatorTakesMembersThatHadNotFinishedWhatIsBeforeTheNewestView) {
  Membership membership = three_and_one();
  membership.share_anew({1, 1, 2, 1});
  for (const std::uint32_t member : {0, 1}) {
    expect_none(membership.halted(member, {1, 2}, 9, 10));
  }
  const View newest = expect_view(membership.halted(2, {1, 2}, 9, 10));
  MembershipOptions options;
  options.term = 2;
  options.ring = {0, 1, 2};
  options.weights = {1, 1, 1, 1};
  options.micro_batches = 6;
  options.steps_per_iteration = 4;
  Membership next(options);
  ASSERT_TRUE(next.go_on_from(newest).ok());
  EXPECT_FALSE(next.is_planned());
  expect_none(next.halted(0, {2, 1}, 10));
  expect_none(next.halted(1, {2, 1}, 9));
  const View view = expect_view(next.halted(2, {2, 1}, 9));
  EXPECT_EQ(view.first_step, 10U);
  EXPECT_THAT(view.reached, ElementsAre(10, 9, 9));
}

}  // namespace
}  // namespace troupe::pipeline
