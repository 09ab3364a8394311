// How a run shares out work by measured speed, and waits when too few members are left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/company.h"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Sharing, WorkIsSharedOutByMeasuredSpeedFromAnIterationThatNobodyHasBegun) {
  Company company(3);
  company.speeds = {8.0, 24.0, 8.0};
  company.run();
  expect_good_end(company);
  ASSERT_EQ(company.outcome->changes.size(), 1U) << "the second time nothing would be gained";
  const RunOutcome::ViewChange& change = company.outcome->changes[0];
  EXPECT_EQ(change.shared_anew, "an iteration takes 0.25 s and would take 0.167 s");
  EXPECT_THAT(change.causes, IsEmpty());
  EXPECT_THAT(change.view.owners, ElementsAre(0, 0, 1, 1, 2, 2));
  ASSERT_EQ(change.view.later.size(), 1U);
  EXPECT_THAT(change.view.later[0].owners, ElementsAre(0, 1, 1, 1, 1, 2));
  EXPECT_EQ(company.heard["reducer.1"].back(), "view 1.2 of 0 1 2 from 5");
}

// It tells no speed any more then, and is not taken for another one because of that.
TEST(Sharing, OneThatIsTooSlowToBeGivenAnythingStaysSo) {
  Company company(3);
  company.speeds = {24.0, 24.0, 1.0};
  company.run();
  expect_good_end(company);
  ASSERT_EQ(company.outcome->changes.size(), 1U);
  EXPECT_THAT(company.outcome->changes[0].view.later[0].owners, ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(Sharing, NothingIsSharedOutAnewForIterationsThatDoNotCome) {
  Company company(3);
  company.speeds = {8.0, 24.0, 8.0};
  company.iterations = 102;
  company.run();
  EXPECT_TRUE(company.outcome->changes.empty());
}

TEST(Sharing, SpeedsChangeNothingWhereTheyAreNotWanted) {
  Company company(3);
  company.shares_anew = false;
  company.speeds = {8.0, 24.0, 8.0};
  company.run();
  expect_good_end(company);
  EXPECT_TRUE(company.outcome->changes.empty());
}

TEST(Sharing, TooFewThatAreLeftWaitOrEndTheRunWhereNobodyCanJoin) {
  Company company(3);
  company.min_members = 3;
  company.lose(1, milliseconds(1000));
  company.run();
  ASSERT_TRUE(company.end.error);
  EXPECT_EQ(company.end.error->kind, ErrorKind::kLostPeers);
  EXPECT_THAT(company.end.error->message,
              AllOf(HasSubstr("2 of at least 3 members"), HasSubstr("cluster.joiners")));
  EXPECT_THAT(company.heard["reducer.0"], ElementsAre("view 1.1 of 0 1 2 from 5", "halt 1.2"));
  EXPECT_TRUE(company.outcome->saved);
}

}  // namespace
}  // namespace troupe::actors
