// A member that is one process after another: what is said of an earlier one is not said of the
// next.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/company.h"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

// Members 0 and 1, and member 2, whose first process comes and is lost before it has learned.
struct Places : Company {
  Places() : Company(3, 1) {
    reused_from = 2;
    join(2, milliseconds(1500));
    cue(0, milliseconds(2500), [] { return Message::of(PeerLost{"member.2", kDeath}); });
  }
  void second_comes(milliseconds at) {
    cue(2, at, [] { return Message::of(PeerJoined{"member.2.2", "", "", 2}); });
  }
};

TEST(Places, SecondProcessOfAMemberHasANameOfItsOwnAndIsTaught) {
  Places company;
  company.second_comes(milliseconds(4000));
  company.run();
  EXPECT_THAT(company.joining, ElementsAre("member.2", "member.2.2"));
  EXPECT_THAT(company.taught, ElementsAre(2, 2));
  EXPECT_THAT(company.processes, ElementsAre(1, 2));
  EXPECT_THAT(company.likely, Each(Pair(2, ElementsAre(0, 1, 2)))) << "whom it is to meet";
  EXPECT_EQ(company.likely.size(), 2U);
  EXPECT_THAT(company.changes, Contains("member.2 dead: its connection closed"));
}

// Members 0 and 1 come over loopback, so they are where the head is.
TEST(Places, NewcomerIsNearThoseOfTheHeadsMachineByTheAddressOfThat) {
  for (const bool has_address : {false, true}) {
    Company company(4, 1);
    company.addresses = {{0, "tcp://127.0.0.1:7000"},
                         {1, "tcp://[::1]:7000"},
                         {2, "tcp://10.2.0.2:7000"},
                         {3, "tcp://10.1.0.9:7000"}};
    if (has_address) company.own_host = "10.1.0.1";
    company.join(3, milliseconds(1500));
    company.run();
    const std::vector<std::uint32_t> ring = has_address ? std::vector<std::uint32_t>{0, 1, 3, 2}
                                                        : std::vector<std::uint32_t>{0, 1, 2, 3};
    EXPECT_THAT(company.likely, Each(Pair(3, ring)));
    EXPECT_FALSE(company.likely.empty());
  }
}

TEST(Places, WhatIsSaidOfTheFirstProcessDoesNotHarmTheSecond) {
  Places company;
  company.second_comes(milliseconds(4000));
  const auto soon = milliseconds(5000);
  // A newcomer goes whenever a member has lost it.
  company.cue(0, soon, [] { return Message::of(NeighbourLost{"member.2", kDeath}); });
  company.cue(1, soon, [] { return Message::of(PeerLost{"member.2", kDeath}); });
  company.cue(1, milliseconds(5500), [] { return Message::of(PeerJoined{"member.2", "", "", 1}); });
  company.drain("member.2", milliseconds(6000));
  company.run();
  EXPECT_THAT(company.heard["member.2"], Not(Contains(StartsWith("expelled"))));
  EXPECT_THAT(company.drained(), ElementsAre(HasSubstr("no member of the run has the name")));
  EXPECT_THAT(company.changes, Not(Contains(StartsWith("member.2.2 dead"))));
}

TEST(Places, SecondProcessOfAMemberIsLostByItsOwnName) {
  Places company;
  company.second_comes(milliseconds(4000));
  company.cue(0, milliseconds(5000), [] {
    return Message::of(NeighbourLost{"member.2.2", kDeath});
  });
  company.run();
  EXPECT_THAT(company.heard["member.2"],
              ElementsAre("expelled: member.0 has lost member.2.2: its connection closed"));
  EXPECT_THAT(company.changes, Contains(AllOf(StartsWith("member.2.2 dead"))));
}

// The head's node parts with it, and the root hears of it, before anybody else may come.
TEST(Places, WhereMembersAreOneProcessEachNobodyComesAgain) {
  Places company;
  company.reused_from = UINT32_MAX;
  company.second_comes(milliseconds(4000));
  company.run();
  EXPECT_THAT(company.joining, ElementsAre("member.2"));
  EXPECT_THAT(company.taught, ElementsAre(2));
}

// A head that returns knows from its file that a second process was asked to be the member, and
// that the newest View has the first.
TEST(Places, NextHeadTakesTheSecondProcessForNoMemberOfTheView) {
  Company company(3, 1);
  company.reused_from = 2;
  company.predecessor = CoordinatorOptions::Predecessor{
      .taken = {0, 1, 2}, .expected = {0, 1, 2}, .processes = {{2, 2}}, .renewed = {2}};
  company.cue(2, milliseconds(10), [] { return Message::of(PeerJoined{"member.2.2", "", "", 2}); });
  company.run();
  EXPECT_THAT(company.heard["member.2"],
              ElementsAre("expelled: the run has gone on without member.2.2"));
  EXPECT_THAT(company.changes, Contains(StartsWith("member.2.2 dead")));
}

}  // namespace
}  // namespace troupe::actors
