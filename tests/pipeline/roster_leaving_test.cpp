// Members that leave a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/steps/nearest_members.h"
#include "tests/pipeline/roster_words.h"

namespace troupe::pipeline {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Roster, MemberThatAloneKnowsStaysUntilOneOfTheOthersDoes) {
  Roster roster = run_with_newcomer();
  lose(roster, 1, kDeath, "dead");
  EXPECT_THAT(after(roster, [&] { let_leave(roster, 0, "somebody asked"); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 2, 3, true); }),
              ElementsAre("release 0", "0 is ended", "halt 2 for 1.4"));
}

// Three train, and the one of this number is asked to leave.
Roster run_that_is_left_by(std::uint32_t member) {
  Roster roster = run_of(3);
  roster.options.handover_grace = seconds(10);
  EXPECT_THAT(after(roster, [&] { let_leave(roster, member, "somebody asked"); }),
              ElementsAre("halt 0 for 1.2 as planned", "halt 1 for 1.2 as planned",
                          "halt 2 for 1.2 as planned"));
  for (const std::uint32_t each : {0U, 1U}) (void)halted(roster, each, 8);
  EXPECT_THAT(halted(roster, 2, 8), ElementsAre("View 1.2 of 0 1 2 from 8"));
  return roster;
}

TEST(Roster, MemberThatIsToLeaveStaysUntilOthersHaveItsWork) {
  Roster roster = run_that_is_left_by(1);
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { let_leave(roster, 1, ""); }), IsEmpty()) << "it is on its way";
  EXPECT_THAT(after(roster, [&] { note_idle(roster, 2); }), IsEmpty()) << "another one's";
  EXPECT_THAT(after(roster, [&] { note_idle(roster, 1); }),
              ElementsAre("halt 0 for 1.3 as planned", "halt 1 for 1.3 as planned",
                          "halt 2 for 1.3 as planned"));
}

// Behind this it makes with the others what is before the View without it, which begins at 9.
Roster run_without(std::uint32_t member) {
  Roster roster = run_that_is_left_by(member);
  note_idle(roster, member);
  for (const std::uint32_t each : {0U, 1U}) (void)halted(roster, each, 9);
  EXPECT_THAT(halted(roster, 2, 9), Contains(HasSubstr("without 1")));
  return roster;
}

TEST(Roster, MemberIsReleasedWhenNobodyWaitsForWhatItSent) {
  Roster roster = run_without(1);
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { note_entered(roster, 0, {1, 3}); }), IsEmpty());
  EXPECT_THAT(after(roster,
                    [&] {
                      note_entered(roster, 2, {1, 3});
                    }),
              ElementsAre("release 1", "1 is ended"));
  EXPECT_THAT(roster.training, ElementsAre(0, 2));
  EXPECT_THAT(after(roster, [&] { lose(roster, 1, kDeath, "dead"); }), IsEmpty());
}

TEST(Roster, MemberThatIsLostWhileOthersWaitForWhatItSentIsLostLikeAnyOther) {
  Roster roster = run_without(1);
  EXPECT_THAT(after(roster, [&] { lose(roster, 1, kDeath, "dead"); }),
              ElementsAre("1 is dead", "halt 0 for 1.4", "halt 2 for 1.4"));
  EXPECT_THAT(halted(roster, 0, 9), IsEmpty());
  EXPECT_THAT(halted(roster, 2, 9), ElementsAre("View 1.4 of 0 2 from 9"));
}

TEST(Roster, MemberThatOthersWaitForTooLongLeavesAllTheSame) {
  Roster roster = run_without(1);
  roster.now += seconds(10);
  EXPECT_THAT(after(roster, [&] { look_after(roster); }),
              ElementsAre("release 1", "1 is ended", "halt 0 for 1.4", "halt 2 for 1.4"));
}

TEST(Roster, LossOfAnotherReleasesAMemberThatHasParted) {
  Roster roster = run_without(1);
  EXPECT_THAT(after(roster, [&] { lose(roster, 2, kDeath, "dead"); }),
              ElementsAre("2 is dead", "halt 0 for 1.4"));
  EXPECT_THAT(halted(roster, 0, 9), ElementsAre("View 1.4 of 0 from 9", "release 1", "1 is ended"));
}

TEST(Roster, MemberThatCouldNotPartForALossDoesSoBehindIt) {
  Roster roster = run_that_is_left_by(1);
  note_idle(roster, 1);
  lose(roster, 2, kDeath, "dead");
  (void)halted(roster, 0, 9);
  EXPECT_THAT(halted(roster, 1, 9), ElementsAre("View 1.4 of 0 1 from 9"));
  EXPECT_THAT(after(roster, [&] { look_after(roster); }),
              ElementsAre("halt 0 for 1.5 as planned", "halt 1 for 1.5 as planned"));
}

TEST(Roster, MemberWaitsForAChangeThatIsUnderWayBeforeItParts) {
  Roster roster = run_of(4, 1);
  roster.options.handover_grace = seconds(10);
  let_leave(roster, 1, "somebody asked");
  for (const std::uint32_t each : {0U, 1U, 2U}) (void)halted(roster, each, 8);
  arrive(roster, 3);
  note_learned(roster, 3, 2, false);
  EXPECT_THAT(after(roster, [&] { note_idle(roster, 1); }), IsEmpty());
  for (const std::uint32_t each : {0U, 1U, 2U, 3U}) (void)halted(roster, each, 9);
  EXPECT_EQ(roster.membership.view().id, (ViewId{1, 3}));
  // The newcomer may lack something yet.
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 3, 3, true); }),
              Contains("halt 1 for 1.4 as planned"));
}

TEST(Roster, MemberLeavesAtOnceWhereTooFewWouldBeLeftToGoOn) {
  Roster roster = run_of(3, 0, 3);
  roster.options.handover_grace = seconds(10);
  let_leave(roster, 1, "somebody asked");
  for (const std::uint32_t each : {0U, 1U, 2U}) (void)halted(roster, each, 8);
  EXPECT_THAT(after(roster, [&] { note_idle(roster, 1); }),
              ElementsAre("release 1", "1 is ended", "halt 0 for 1.3", "halt 2 for 1.3"));
}

// Member 1 has handed over, and 3 learns from it.
Roster run_with_a_teacher_that_leaves() {
  Roster roster = run_of(4, 1);
  roster.options.handover_grace = seconds(10);
  arrive(roster, 3);
  roster.members[3].teacher = 1;
  let_leave(roster, 1, "somebody asked");
  for (const std::uint32_t each : {0U, 1U, 2U}) (void)halted(roster, each, 8);
  EXPECT_THAT(after(roster, [&] { note_idle(roster, 1); }), IsEmpty());
  return roster;
}

TEST(Roster, MemberThatTeachesPartsWhenItsPupilLacksNothing) {
  Roster roster = run_with_a_teacher_that_leaves();
  note_learned(roster, 3, 2, false);
  for (const std::uint32_t each : {0U, 1U, 2U}) (void)halted(roster, each, 9);
  EXPECT_THAT(halted(roster, 3, 9), ElementsAre("View 1.3 of 0 1 2 3 from 9"));
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 3, 3, true); }),
              Contains("halt 3 for 1.4 as planned"));
}

TEST(Roster, NewcomerWhoseTeacherHasNoTimeToTeachItIsExpelled) {
  Roster roster = run_with_a_teacher_that_leaves();
  roster.now += seconds(10);
  EXPECT_THAT(after(roster, [&] { look_after(roster); }),
              ElementsAre("release 1", "1 is ended",
                          "expel 3: member.3 learned from member.1, which is lost; join again",
                          "3 is dead", "1 forgets 3", "halt 0 for 1.3", "halt 2 for 1.3"));
}

TEST(Roster, NobodyLearnsFromAMemberThatParts) {
  Roster roster = run_that_is_left_by(1);
  note_idle(roster, 1);
  roster.members[0].leaves_because = roster.members[2].leaves_because = "somebody asked";
  roster.members[0].parts = true;
  EXPECT_EQ(nearest_teacher(roster, 1), 2U);
}

// The View that it is not in names it, and no other does.
TEST(Roster, MemberThatPartsIsACauseOfTheViewWithoutItAlone) {
  const auto causes = [](const Roster& roster) {
    for (const RosterAction& action : roster.actions) {
      if (const auto* told = std::get_if<TellView>(&action)) return told->causes;
    }
    return Lines{"no View"};
  };
  Roster roster = run_that_is_left_by(1);
  note_idle(roster, 1);
  lose(roster, 2, kDeath, "dead");
  (void)halted(roster, 0, 9);
  (void)halted(roster, 1, 9);
  EXPECT_THAT(causes(roster), ElementsAre(kDeath.message));
  look_after(roster);
  (void)halted(roster, 1, 9);
  (void)halted(roster, 0, 9);
  EXPECT_THAT(causes(roster), ElementsAre("member.1 has left the run: it was told to end"));
}

TEST(Roster, MemberLeavesWithoutHavingHandedItsWorkOverWhenThatTakesTooLong) {
  Roster roster = run_that_is_left_by(1);
  roster.now += seconds(9);
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), IsEmpty());
  roster.now += seconds(1);
  std::vector<std::string> warned;
  const auto look = [&] {
    look_after(roster);
    for (const RosterAction& action : roster.actions) {
      const auto* line = std::get_if<LogLine>(&action);
      if (line != nullptr && line->warns) warned.push_back(line->text);
    }
  };
  EXPECT_THAT(after(roster, look),
              ElementsAre("release 1", "1 is ended", "halt 0 for 1.3", "halt 2 for 1.3"));
  EXPECT_THAT(warned, Contains("member.1 has not finished what it computes within 10 s, and "
                               "leaves: others compute that from its beginning"));
}

TEST(Roster, MemberLeavesAtOnceWhenNobodyStaysWhoCouldTakeItsWork) {
  Roster roster = run_of(2);
  roster.options.handover_grace = seconds(10);
  let_leave(roster, 1, "somebody asked");
  EXPECT_THAT(after(roster, [&] { let_leave(roster, 0, "somebody asked"); }),
              ElementsAre("release 0", "0 is ended", "halt 1 for 1.3"));
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), ElementsAre("1 may not leave"));
  EXPECT_THAT(roster.membership.weights().relieved(), IsEmpty());
}

TEST(Roster, MemberThatHandsItsWorkOverMayBeLostLikeAnyOther) {
  Roster roster = run_that_is_left_by(1);
  EXPECT_THAT(after(roster, [&] { lose(roster, 1, kDeath, "dead"); }),
              ElementsAre("1 is dead", "halt 0 for 1.3", "halt 2 for 1.3"));
  EXPECT_THAT(after(roster, [&] { note_idle(roster, 1); }), IsEmpty());
  EXPECT_THAT(halted(roster, 0, 9), IsEmpty());
  EXPECT_THAT(halted(roster, 2, 9), ElementsAre("View 1.3 of 0 2 from 9"));
}

TEST(Roster, WorkIsNotSharedOutBySpeedWhileAMemberHandsItsOver) {
  Roster roster = run_that_is_left_by(1);
  Lines lines;
  for (int round = 0; round < 20; ++round) {
    for (const std::uint32_t replica : {0U, 1U, 2U}) {
      const double speed = replica == 0 ? 9.0 : 1.0;
      for (std::string& line :
           after(roster, [&] { note_pace(roster, replica, 20, 2.0, 2.0 * speed); })) {
        lines.push_back(std::move(line));
      }
    }
  }
  EXPECT_THAT(lines, IsEmpty());
}

TEST(Roster, MemberThatStayedForANewcomerMayNotLeaveWhenThatIsLost) {
  Roster roster = run_with_newcomer();
  lose(roster, 1, kDeath, "dead");
  let_leave(roster, 0, "somebody asked");
  lose(roster, 2, kDeath, "dead");
  EXPECT_THAT(after(roster, [&] { look_after(roster); }), ElementsAre("0 may not leave"));
}

}  // namespace
}  // namespace troupe::pipeline
