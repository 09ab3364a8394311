#include "tests/pipeline/roster_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Phase = Roster::Phase;

TEST(Roster, BeginsWhenAllAreHere) {
  Roster roster = run_of(3, 1, 1, false);
  EXPECT_THAT(after(roster, [&] { arrive(roster, 0); }), IsEmpty());
  EXPECT_THAT(roster.absent(), ElementsAre(1U));
  EXPECT_THAT(after(roster, [&] { arrive(roster, 1); }), IsEmpty());
  EXPECT_THAT(roster.absent(), IsEmpty());
  EXPECT_THAT(after(roster, [&] { begin(roster); }),
              ElementsAre("begin 0", "begin 1", "View 1.1 of 0 1 from 5"));
}

TEST(Roster, LossBeforeAllAreHereEndsTheRun) {
  Roster roster = run_of(3, 1, 1, false);
  EXPECT_THAT(after(roster, [&] { lose(roster, 2, kDeath, "dead"); }), ElementsAre("2 is dead"))
      << "nobody waits for it";
  EXPECT_THAT(after(roster, [&] { lose(roster, 1, kDeath, "dead"); }),
              ElementsAre("1 is dead", "stop : its connection closed", "end"));
}

TEST(Roster, OthersGoOnFromTheFurthestStepWhenOneIsLost) {
  Roster roster = run_of(3);
  EXPECT_THAT(after(roster, [&] { lose(roster, 1, kDeath, "dead"); }),
              ElementsAre("1 is dead", "halt 0 for 1.2", "halt 2 for 1.2"));
  EXPECT_THAT(after(roster, [&] { lose(roster, 1, kDeath, "dead"); }), IsEmpty()) << "it is known";
  EXPECT_THAT(halted(roster, 0, 7), IsEmpty());
  EXPECT_THAT(halted(roster, 2, 8), ElementsAre("View 1.2 of 0 2 from 8"));
}

TEST(Roster, LastOneThatIsLostStopsTrainingAndWhatItHadMadeIsSaved) {
  Roster roster = run_of(2);
  lose(roster, 1, kDeath, "dead");
  EXPECT_THAT(after(roster, [&] { lose(roster, 0, kDeath, "dead"); }),
              ElementsAre("0 is dead", "stop 0: its connection closed", "save"));
  EXPECT_EQ(roster.phase, Phase::kOver);
}

TEST(Roster, MemberThatLacksMoreThanTheOthersCanGiveIsExpelled) {
  Roster roster = run_of(3);
  lose(roster, 2, kDeath, "dead");
  (void)halted(roster, 0, 7);
  EXPECT_THAT(halted(roster, 1, 9),
              ElementsAre("expel 0: member.0 lacks more than the others can give it; join again",
                          "0 is dead", "halt 1 for 1.3"));
}

TEST(Roster, AnswerThatCannotBeRightStopsTraining) {
  Roster roster = run_of(3);
  lose(roster, 2, kDeath, "dead");
  EXPECT_THAT(halted(roster, 0, 3), ElementsAre(HasSubstr("stop 0 1: member.0 would make step 3")));
}

TEST(Roster, NewcomerLearnsFromTheLeaderAndIsAdmittedWhenItHasShownThatItCan) {
  Roster roster = run_of(3, 1);
  EXPECT_THAT(after(roster, [&] { arrive(roster, 2); }), ElementsAre("0 teaches 2"));
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 2, 0, false); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 2, 2, false); }),
              ElementsAre("halt 0 for 1.2 as planned", "halt 1 for 1.2 as planned",
                          "halt 2 for 1.2 as planned"));
  for (const std::uint32_t member : {0U, 1U}) EXPECT_THAT(halted(roster, member, 8), IsEmpty());
  EXPECT_THAT(halted(roster, 2, 7), ElementsAre("View 1.2 of 0 1 2 from 8"));
}

TEST(Roster, NewcomerLearnsFromTheMemberOfTheNearestAddressThatStays) {
  const auto teacher_of = [](const std::string& host, std::optional<std::uint32_t> leaves) {
    Roster roster = run_of(5, 1);
    const char* hosts[] = {"10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"};
    for (std::uint32_t member = 0; member < 4; ++member)
      roster.members[member].host = hosts[member];
    if (leaves) roster.members[*leaves].leaves_because = "";
    return after(roster, [&] { arrive(roster, 4, host); });
  };
  EXPECT_THAT(teacher_of("10.2.0.9", {}), ElementsAre("2 teaches 4"));
  EXPECT_THAT(teacher_of("10.2.0.2", {}), ElementsAre("3 teaches 4"));
  EXPECT_THAT(teacher_of("10.2.0.9", 2), ElementsAre("3 teaches 4"));
  EXPECT_THAT(teacher_of("10.1.0.9", {}), ElementsAre("0 teaches 4"));
  EXPECT_THAT(teacher_of("fd00::1", {}), ElementsAre("0 teaches 4"));
  EXPECT_THAT(teacher_of("", {}), ElementsAre("0 teaches 4"));
  EXPECT_THAT(teacher_of("", 0), ElementsAre("1 teaches 4"));
}

TEST(Roster, NewcomerStandsBehindTheMembersOfTheNearestAddress) {
  const auto ring_with = [](const std::string& host) {
    Roster roster = run_of(5, 1);
    const char* hosts[] = {"10.1.0.1", "10.1.0.1", "10.2.0.1", "10.2.0.2"};
    for (std::uint32_t member = 0; member < 4; ++member)
      roster.members[member].host = hosts[member];
    arrive(roster, 4, host);
    return roster.membership.view_with(4).ring;
  };
  EXPECT_THAT(ring_with("10.1.0.9"), ElementsAre(0, 1, 4, 2, 3));
  EXPECT_THAT(ring_with("10.2.0.1"), ElementsAre(0, 1, 2, 4, 3));
  EXPECT_THAT(ring_with("fd00::1"), ElementsAre(0, 1, 2, 3, 4));
}

// Sites keep their place when all of their members are about to leave, or are lost, and when
// another coordinator goes on.
TEST(Roster, NewcomerStandsWhereItsSiteWas) {
  const auto run_of_sites = [] {
    Roster roster = run_of(6, 2);
    const char* hosts[] = {"10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"};
    for (std::uint32_t member = 0; member < 4; ++member)
      roster.members[member].host = hosts[member];
    return roster;
  };
  Roster roster = run_of_sites();
  for (const std::uint32_t member : {0U, 1U}) roster.members[member].leaves_because = "";
  arrive(roster, 4, "10.1.0.9");
  EXPECT_EQ(roster.members[4].teacher, 2U);
  EXPECT_THAT(roster.membership.view_with(4).ring, ElementsAre(0, 1, 4, 2, 3));
  lose(roster, 0, kDeath, "dead");
  lose(roster, 1, kDeath, "dead");
  arrive(roster, 5, "10.1.0.1");
  View view = roster.membership.view_with(5);
  EXPECT_THAT(view.ring, ElementsAre(5, 2, 3));
  view.id.number = 9;

  Roster next = run_of_sites();
  next.options.membership.term = 2;
  next.membership = Membership(next.options.membership);
  next.phase = Roster::Phase::kReturning;
  for (const std::uint32_t member : {2U, 3U, 5U}) {
    arrive(next, member, member == 5 ? "10.1.0.1" : member == 2 ? "10.2.0.1" : "10.2.0.2");
  }
  Reports reports;
  for (const std::uint32_t member : {2U, 3U, 5U}) {
    reports[member] = {{2, 1}, view.first_step, 0, 0, std::make_shared<const View>(view)};
  }
  go_on_from(next, view, reports, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(next.membership.view().ring, ElementsAre(5, 2, 3));
}

TEST(Roster, NewcomerThatIsLostFailsOrIsTooSlowCostsTheOthersNothing) {
  Roster roster = run_of(3, 1);
  arrive(roster, 2);
  EXPECT_THAT(after(roster, [&] { note_too_slow(roster, 2, 1, 1); }), IsEmpty())
      << "1 does not teach it";
  EXPECT_THAT(
      after(roster, [&] { note_too_slow(roster, 2, 1, 0); }),
      ElementsAre(HasSubstr("expel 2: member.2 learns more slowly"), "2 is dead", "0 forgets 2"));
  roster = run_of(3, 1);
  arrive(roster, 2);
  EXPECT_THAT(after(roster, [&] { note_failure(roster, 2, 2, kDeath); }),
              ElementsAre("expel 2: its connection closed", "2 is dead", "0 forgets 2"));
}

TEST(Roster, NewcomerWhoseTeacherIsLostIsExpelled) {
  Roster roster = run_of(3, 1);
  arrive(roster, 2);
  EXPECT_THAT(
      after(roster, [&] { lose(roster, 0, kDeath, "dead"); }),
      ElementsAre("0 is dead", "expel 2: member.2 learned from member.0, which is lost; join again",
                  "2 is dead", "0 forgets 2", "halt 1 for 1.2"));
}

TEST(Roster, NewcomerThatLacksWhatALostTeacherSentItIsExpelled) {
  Roster roster = run_with_newcomer();
  lose(roster, 0, kDeath, "dead");
  EXPECT_THAT(halted(roster, 2, 7),
              Contains("expel 2: member.2 lacks what member.0 was sending it, which is lost; join "
                       "again"));
}

TEST(Roster, AnotherIsAdmittedAsPlannedWhileANewcomerStillLearns) {
  Roster roster = run_of(4, 2);
  for (const std::uint32_t member : {2U, 3U}) arrive(roster, member);
  note_learned(roster, 2, 2, false);
  for (const std::uint32_t member : {0U, 1U}) (void)halted(roster, member, 8);
  EXPECT_THAT(halted(roster, 2, 6), ElementsAre("View 1.2 of 0 1 2 from 8"));
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 3, 2, false); }),
              ElementsAre("halt 0 for 1.3 as planned", "halt 1 for 1.3 as planned",
                          "halt 2 for 1.3 as planned", "halt 3 for 1.3 as planned"));
}

// It has all that was sent to it, and makes what is before the View of the second change.
TEST(Roster, NewcomerThatHasLearnedStaysWhereItsTeacherIsLostBeforeItIsAsFarAsTheOthers) {
  Roster roster = run_with_newcomer();
  roster.membership.share_anew({1, 1, 2});
  const ViewId change = roster.membership.change().value();
  const auto view = std::make_shared<const View>(roster.membership.view());
  for (const std::uint32_t member : {0U, 1U}) {
    note_halted(roster, member, {change, 8, 10, 0, view});
  }
  note_halted(roster, 2, {change, 7, 7, 0, view});
  lose(roster, 0, kDeath, "dead");
  EXPECT_THAT(halted(roster, 2, 8), IsEmpty());
  EXPECT_THAT(halted(roster, 1, 9), ElementsAre("View 1.4 of 1 2 from 9"));
}

TEST(Roster, TooFewWaitForOthersAndSayItOnceOrEndTheRunWhereNobodyCanCome) {
  Roster roster = run_of(3, 1, 2);
  lose(roster, 1, kDeath, "dead");
  EXPECT_THAT(halted(roster, 0, 8), IsEmpty());
  roster.actions.clear();
  look_after(roster);
  EXPECT_THAT(roster.actions, IsEmpty()) << "the log says already that it waits";
  arrive(roster, 2);
  // It has a state, and no steps are made that it could show anything by.
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 2, 0, false); }),
              ElementsAre("halt 0 for 1.3", "halt 2 for 1.3"));
  lose(roster, 2, kDeath, "dead");
  EXPECT_THAT(halted(roster, 0, 8), ElementsAre(HasSubstr("stop 0: 1 of at least 2 members")));
}

TEST(Roster, NextHeadGoesOnFromTheNewestViewWithoutThoseThatDidNotComeBack) {
  const Roster before = run_with_newcomer();
  const auto old = std::make_shared<const View>(run_of(3, 1).membership.view());
  const auto newest = std::make_shared<const View>(before.membership.view());
  RosterOptions options = before.options;
  options.membership.term = 2;
  Roster roster(options);
  roster.phase = Phase::kReturning;
  arrive(roster, 0);
  arrive(roster, 2);
  const Reports reports{{0, {{2, 1}, 9, 9, 0, newest}}, {2, {{2, 1}, 8, 8, 0, newest}}};
  EXPECT_EQ(newest_view({{0, {{2, 1}, 9, 9, 0, old}}, {2, {{2, 1}, 8, 8, 0, newest}}}),
            newest.get());
  EXPECT_THAT(after(roster,
                    [&] {
                      go_on_from(roster, *newest, reports, {0, 1, 2});
                    }),
              ElementsAre("1 is dead", "halt 0 for 2.2", "halt 2 for 2.2"));
  (void)halted(roster, 0, 9);
  EXPECT_THAT(halted(roster, 2, 9), ElementsAre("View 2.2 of 0 2 from 9"));
}

TEST(Roster, NextHeadKeepsNoNewcomersThatWereInNoViewOrLackLessons) {
  const Roster before = run_with_newcomer();
  const auto newest = std::make_shared<const View>(before.membership.view());
  RosterOptions options = before.options;
  options.names.emplace_back("member.3");
  options.membership.weights.push_back(1);
  options.membership.term = 2;
  Roster roster(options);
  roster.phase = Phase::kReturning;
  for (const std::uint32_t member : {0U, 1U, 2U, 3U}) arrive(roster, member);
  const Reports reports{{0, {{2, 1}, 8, 8, 0, newest}},
                        {1, {{2, 1}, 8, 8, 0, newest}},
                        {2, {{2, 1}, 7, 7, 0, newest}}};
  const Lines lines = after(roster, [&] { go_on_from(roster, *newest, reports, {0, 1, 2, 3}); });
  EXPECT_THAT(lines, Contains(HasSubstr("expel 3: member.3 was in no View")));
  EXPECT_THAT(lines, Contains(HasSubstr("expel 2: member.2 lacks steps")));
  EXPECT_THAT(lines, Contains("halt 0 for 2.2"));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("expel 0"))));
}

// The planned View begins at 11, where the others still made step 9. Only the newcomer took it.
TEST(Roster, NextHeadGoesOnFromTheViewThatTheOthersAreInWhereOnlyANewcomerHasTakenANewerOne) {
  const auto old = std::make_shared<const View>(run_of(3, 1).membership.view());
  View newest = *old;
  newest.id.number = 2;
  newest.first_step = 11;
  newest.ring = {0, 1, 2};
  newest.reached = {11, 11, 8};
  newest.newcomers = {2};
  const auto planned = std::make_shared<const View>(newest);
  RosterOptions options = run_of(3, 1).options;
  options.membership.term = 2;
  Roster roster(options);
  roster.phase = Phase::kReturning;
  for (const std::uint32_t member : {0U, 1U, 2U}) arrive(roster, member);
  const Reports reports{
      {0, {{2, 1}, 9, 9, 0, old}}, {1, {{2, 1}, 9, 9, 0, old}}, {2, {{2, 1}, 8, 8, 0, planned}}};
  ASSERT_EQ(newest_view(reports), old.get());
  const Lines lines = after(roster, [&] { go_on_from(roster, *old, reports, {0, 1, 2}); });
  EXPECT_THAT(lines, Contains(HasSubstr("expel 2: member.2 was in no View")));
  EXPECT_THAT(lines, Contains("View 2.1 of 0 1 from 9"));
}

// Members 0 and 1 train, and many processes may be member 2 or 3 one after the other.
Roster run_with_places(std::uint32_t min_members = 1) {
  Roster roster = run_of(4, 2, min_members);
  roster.options.reused_from = 2;
  return roster;
}

void come(Roster& roster, std::uint32_t member) {
  roster.members[member].is_connected = true;
  arrive(roster, member);
}

Lines next_look(Roster& roster) {
  return after(roster, [&] { look_after(roster); });
}

TEST(Roster, ProcessOfALostNewcomerIsHeardToTheEndBeforeAnotherMayCome) {
  Roster roster = run_with_places();
  come(roster, 2);
  lose(roster, 2, kDeath, "dead");
  const auto tells = [](const RosterAction& action) {
    const auto* line = std::get_if<LogLine>(&action);
    return line != nullptr && line->warns && line->text.starts_with("member.2 does not join: ");
  };
  EXPECT_TRUE(std::ranges::any_of(roster.actions, tells));
  EXPECT_THAT(next_look(roster), IsEmpty());
  EXPECT_TRUE(roster.is_lost(2));
  roster.members[2].is_connected = false;
  EXPECT_THAT(next_look(roster), ElementsAre("process 2 of 2 may come"));
  EXPECT_FALSE(roster.is_lost(2));
  EXPECT_THAT(next_look(roster), IsEmpty());
  EXPECT_THAT(after(roster, [&] { come(roster, 2); }), ElementsAre("0 teaches 2"));
  // Not what was said of the one before it.
  EXPECT_THAT(after(roster, [&] { note_too_slow(roster, 2, 1, 0); }), IsEmpty());
  EXPECT_THAT(after(roster, [&] { note_too_slow(roster, 2, 2, 0); }),
              Contains(HasSubstr("expel 2: member.2 learns more slowly")));
}

TEST(Roster, AnotherProcessMayComeWhenAllHaveHaltedThatKnewTheOneBefore) {
  Roster roster = run_with_places();
  come(roster, 2);
  note_learned(roster, 2, 0, false);
  note_learned(roster, 2, 2, false);
  for (const std::uint32_t member : {0U, 1U}) (void)halted(roster, member, 8);
  EXPECT_THAT(halted(roster, 2, 7), ElementsAre("View 1.2 of 0 1 2 from 8"));
  roster.members[2].is_connected = false;
  lose(roster, 2, kDeath, "dead");
  EXPECT_THAT(next_look(roster), IsEmpty());
  (void)halted(roster, 0, 9);
  EXPECT_THAT(next_look(roster), IsEmpty());
  EXPECT_THAT(halted(roster, 1, 9), ElementsAre("View 1.3 of 0 1 from 9"));
  EXPECT_THAT(next_look(roster), ElementsAre("process 2 of 2 may come"));
}

TEST(Roster, MembersThatTheRunBeganWithAreNoOtherProcesses) {
  Roster roster = run_with_places();
  lose(roster, 1, kDeath, "dead");
  (void)halted(roster, 0, 8);
  EXPECT_THAT(next_look(roster), IsEmpty());
  EXPECT_TRUE(roster.is_lost(1));
}

// All that are left have halted, and none can be in a View without the lost one.
TEST(Roster, WithTooFewMembersAnotherProcessMayComeBeforeTheNextView) {
  Roster roster = run_with_places(2);
  come(roster, 2);
  note_learned(roster, 2, 0, false);
  note_learned(roster, 2, 2, false);
  for (const std::uint32_t member : {0U, 1U}) (void)halted(roster, member, 8);
  (void)halted(roster, 2, 8);
  lose(roster, 1, kDeath, "dead");
  (void)halted(roster, 0, 9);
  (void)halted(roster, 2, 9);
  // Nobody but member 2 and 3, of which one is lost, may come any more.
  roster.members[3].state = Roster::Member::State::kLost;
  roster.members[2].is_connected = false;
  lose(roster, 2, kDeath, "dead");
  EXPECT_THAT(halted(roster, 0, 9), IsEmpty());
  EXPECT_THAT(next_look(roster), ElementsAre("process 2 of 2 may come", "process 2 of 3 may come"));
  EXPECT_THAT(after(roster, [&] { come(roster, 2); }), ElementsAre("0 teaches 2"));
  EXPECT_THAT(after(roster, [&] { note_learned(roster, 2, 0, false); }),
              ElementsAre("halt 0 for 1.5", "halt 2 for 1.5"));
  (void)halted(roster, 0, 9);
  EXPECT_THAT(halted(roster, 2, 9), ElementsAre("View 1.5 of 0 2 from 9"));
}

}  // namespace
}  // namespace troupe::pipeline
