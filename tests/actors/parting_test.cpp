// How a run goes on when members are lost, leave, or lose each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/company.h"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(Parting, LostMemberLeavesTheOthersInANewViewFromTheFurthestStepOn) {
  Company company(3);
  company.lose(1, milliseconds(1000));
  company.next_step = {8, 5, 9};
  company.kept_bytes = {100, 200, 300};
  company.run();
  expect_good_end(company);
  for (const char* reducer : {"reducer.0", "reducer.2"}) {
    EXPECT_THAT(company.heard[reducer],
                ElementsAre("view 1.1 of 0 1 2 from 5", "halt 1.2", "view 1.2 of 0 2 from 9"));
  }
  EXPECT_THAT(company.heard["reducer.1"], ElementsAre("view 1.1 of 0 1 2 from 5"));
  EXPECT_THAT(company.heard["member.1"], IsEmpty());
  ASSERT_EQ(company.changes.size(), 2U);
  EXPECT_EQ(company.changes[0], "member.1 dead: its connection closed");
  EXPECT_THAT(
      company.changes[1],
      StartsWith(
          R"({"kind":"view","step":9,"time":0.000,"fields":{"view":"1.2","first_step":9,"members":["member.0","member.2"],)"
          R"("joined":[],"causes":["its connection closed"],"shared_anew":"","halted_seconds":)"));
  EXPECT_THAT(
      company.changes[1],
      EndsWith(R"("micro_batches_taken_over":2,"kept_bytes":300,"time":"after View 1.1"}})"))
      << "of six, and the most of those that are left";
}

TEST(Parting, MemberIsReleasedWhenItTellsThatItHasNoWorkAnyMore) {
  Company company(3);
  company.handover_grace = std::chrono::seconds(10);
  company.cue(1, milliseconds(1000), [] { return Message::of(Leaving{}); });
  company.idle = 1;
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.heard["reducer.1"],
              ElementsAre("view 1.1 of 0 1 2 from 5", "halt 1.2", "view 1.2 of 0 1 2 from 5",
                          "halt 1.3", "view 1.3 of 0 2 from 5"));
  EXPECT_THAT(company.heard["member.1"], ElementsAre("release"));
  EXPECT_THAT(company.heard["reducer.0"],
              ElementsAre("view 1.1 of 0 1 2 from 5", "halt 1.2", "view 1.2 of 0 1 2 from 5",
                          "halt 1.3", "view 1.3 of 0 2 from 5"));
}

TEST(Parting, LastMemberThatIsToldToEndStopsTheRunWithItsStateSaved) {
  Company company(2);
  company.lose(0, milliseconds(500));
  company.cue(1, milliseconds(1000), [] { return Message::of(Leaving{}); });
  company.run();
  ASSERT_TRUE(company.end.error);
  EXPECT_THAT(company.end.error->message, HasSubstr("member.1 has left the run: it was told"));
  EXPECT_TRUE(company.outcome->stopped);
  EXPECT_TRUE(company.outcome->saved);
  EXPECT_EQ(company.outcome->state->iteration, 3U);
}

// Which of two goes, and when, is in tests/pipeline/quarrels_test.cpp.
TEST(Parting, TheLaterOfTwoThatHaveLostEachOtherIsExpelledAfterTheGrace) {
  Company company(3);
  company.quarrel(0, 2, milliseconds(1000));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.heard["member.2"],
              ElementsAre("expelled: member.0 has lost member.2: its connection closed"));
  EXPECT_GE(company.expelled_at["member.2"], runtime::TimePoint(milliseconds(3000)));
  EXPECT_LT(company.expelled_at["member.2"], runtime::TimePoint(milliseconds(3200)));
  EXPECT_EQ(company.heard["reducer.0"].back(), "view 1.2 of 0 1 from 5");
}

TEST(Parting, WhoIsAskedToLeaveIsReleasedAndTheAskersAreToldWhenItHasLeft) {
  Company company(3);
  company.drain("member.1", milliseconds(1000));
  company.drain("member.1", milliseconds(1100));
  std::size_t told_before = 1;
  company.cue(2, milliseconds(1500), [&] {
    told_before = company.drained().size();
    return Message::of(runtime::PeerLeft{"member.1"});
  });
  company.run();
  expect_good_end(company);
  EXPECT_EQ(told_before, 0U) << "it has not left yet";
  EXPECT_THAT(company.drained(), ElementsAre("left", "left"));
  EXPECT_THAT(company.heard["member.1"],
              ElementsAre("release: somebody has asked for it (troupe drain)"));
  EXPECT_EQ(company.heard["reducer.0"].back(), "view 1.2 of 0 2 from 5");
}

TEST(Parting, WhoIsLostWhileItLeavesIsToldAsLost) {
  Company company(3);
  company.drain("member.1", milliseconds(1000));
  company.lose(1, milliseconds(1500));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.drained(),
              ElementsAre(AllOf(StartsWith("member.1 was lost while it left: its connection"),
                                HasSubstr("go on without it"))));
}

TEST(Parting, WhoCannotLeaveIsNotLetGoAndTheAskerHearsWhy) {
  Company company(2);
  company.drain("member.2", milliseconds(1000));
  company.drain("", milliseconds(1001));
  company.drain("head", milliseconds(1002));
  company.drain("member.1", milliseconds(1003));
  company.cue(1, milliseconds(1500), [] { return Message::of(runtime::PeerLeft{"member.1"}); });
  company.drain("member.1", milliseconds(2000));
  company.drain("member.0", milliseconds(2001));
  company.drain("member.0", milliseconds(20'500));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(
      company.drained(),
      ElementsAre(HasSubstr("no member of the run has the name 'member.2'; those that make its "
                            "steps are member.0, member.1"),
                  HasSubstr("has the name ''"), HasSubstr("head leads the run"), "left",
                  HasSubstr("member.1 has already left the run"),
                  HasSubstr("member.0 is the last member that makes steps"),
                  HasSubstr("the run is ending")));
  EXPECT_THAT(company.heard["member.0"], Not(Contains(HasSubstr("somebody"))));
}

TEST(Parting, NobodyIsLetGoBeforeAllHaveComeAndAnAskerWhoWaitsHearsOfTheEnd) {
  Company waiting(3);
  waiting.absent = 2;
  waiting.drain("member.1", milliseconds(1000));
  waiting.lose(1, milliseconds(2000));
  waiting.run();
  EXPECT_THAT(waiting.drained(), ElementsAre(HasSubstr("the run has not begun")));
  // It never says goodbye.
  Company company(3);
  company.drain("member.1", milliseconds(1000));
  company.run();
  expect_good_end(company);
  EXPECT_THAT(company.drained(), ElementsAre("the run has ended, and its members with it"));
}

// Member 1 is in a View from 3 s on, and lacks steps before it that member 0 is sending.
Company with_newcomer_in_view() {
  Company company(2, 1);
  company.next_step = {9, 0};
  company.join(1, milliseconds(1000));
  company.learn(1, std::chrono::seconds(2), {1, 0}, 7);
  company.learn(1, std::chrono::seconds(3), {1, kProvenSteps}, 7);
  return company;
}

TEST(Parting, WhoAloneHasWhatANewcomerLacksStaysUntilThatOneHasItToo) {
  for (const bool asked : {true, false}) {
    Company company = with_newcomer_in_view();
    company.learn(1, std::chrono::seconds(6), {1, kProvenSteps, true}, 9);
    if (asked) company.drain("member.0", milliseconds(4000));
    if (!asked) company.cue(0, milliseconds(4000), [] { return Message::of(Leaving{}); });
    company.run();
    expect_good_end(company);
    EXPECT_THAT(company.heard["reducer.1"], ElementsAre("halt 1.2", "view 1.2 of 0 1 from 9",
                                                        "halt 1.3", "view 1.3 of 1 from 9"));
    EXPECT_EQ(company.released_at["member.0"], runtime::TimePoint(milliseconds(6000)));
    EXPECT_NE(company.outcome->state, nullptr);
  }
}

// It has not lost what the newcomer was to have, and goes on with it.
TEST(Parting, WhoStaysForANewcomerThatIsLostIsTheLastOne) {
  Company asked = with_newcomer_in_view();
  asked.drain("member.0", milliseconds(4000));
  asked.lose(1, milliseconds(5000));
  asked.run();
  expect_good_end(asked);
  EXPECT_THAT(asked.drained(), ElementsAre(HasSubstr("member.0 is the last member that makes")));
  EXPECT_EQ(asked.heard["reducer.0"].back(), "view 1.3 of 0 from 9");

  Company told = with_newcomer_in_view();
  told.drain("member.0", milliseconds(4000));
  told.cue(0, milliseconds(4001), [] { return Message::of(Leaving{}); });
  told.lose(1, milliseconds(5000));
  told.run();
  ASSERT_TRUE(told.end.error);
  EXPECT_THAT(told.end.error->message, HasSubstr("member.0 has left the run: it was told"));
  EXPECT_TRUE(told.outcome->saved);
}

// By then nobody needs the members any more, and they may end in any order.
TEST(Parting, TroubleOfMembersWhileTheLastStateIsSavedChangesNothing) {
  for (const bool while_metrics_are_written : {false, true}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Company company(3);
      const milliseconds at(while_metrics_are_written ? 23'500 : 20'500);
      company.quarrel(0, 2, at);
      company.cue(1, at, [] { return Message::of(Leaving{}); });
      company.cue(1, at + milliseconds(1), [] {
        return Message::of(PeerLost{"member.2", kDeath});
      });
      company.run(seed);
      EXPECT_EQ(company.saving_from, runtime::TimePoint(milliseconds(20'000)));
      EXPECT_EQ(company.flushing_from, runtime::TimePoint(milliseconds(23'000)));
      expect_good_end(company);
      EXPECT_THAT(company.heard["reducer.0"], ElementsAre("view 1.1 of 0 1 2 from 5"));
      EXPECT_TRUE(company.expelled_at.empty());
    }
  }
}

// The head was lost when it had noted the first View and nobody was in it yet.
TEST(Returning, MemberThatComesForTheFirstTimeIsToldAsJoiningAndIsTaught) {
  Company company(3, 1);
  company.predecessor = CoordinatorOptions::Predecessor{{0, 1}, {0, 1}, 5, false};
  company.absent = 1;
  company.join(2, milliseconds(100));
  company.join(1, milliseconds(1000));
  company.run();
  EXPECT_THAT(company.joining, ElementsAre("member.2"));
  EXPECT_THAT(company.heard["reducer.0"], Contains("view 2.1 of 0 1 from 5"));
  EXPECT_THAT(company.taught, ElementsAre(2));
}

}  // namespace
}  // namespace troupe::actors
