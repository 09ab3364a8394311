#include "actors/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::PeerAway;
using runtime::PeerJoined;
using runtime::PeerLeft;
using runtime::PeerLost;
using runtime::Script;
using testing::ElementsAre;
using testing::IsEmpty;

const Error kClosed{ErrorKind::kLostPeers, "it is lost: its connection closed"};

// What a member made of what it was told.
struct Played {
  std::vector<std::string> told;  // the coordinator: "node: error", "leaving"
  bool released = false;          // it stayed until its release
  std::optional<Error> error;     // that it ended with
};

// `tell`: sends the member what its gate would. The coordinator releases it when everything that
// it could have said has come.
Played play_member(const std::function<void(Context&)>& tell) {
  Played played;
  Script coordinator;
  coordinator.start = [&](Context& context) {
    tell(context);
    context.after(std::chrono::seconds(1));
  };
  coordinator.receive = [&](Context&, const Message& message) {
    if (message.as<Leaving>() != nullptr) {
      played.told.emplace_back("leaving");
      return;
    }
    const auto* lost = message.as<NeighbourLost>();
    ASSERT_NE(lost, nullptr) << message.name();
    EXPECT_EQ(lost->error.kind, ErrorKind::kLostPeers);
    played.told.push_back(lost->node + ": " + lost->error.message);
  };
  coordinator.timer = [&](Context& context, runtime::TimerId) {
    played.released = true;
    context.send_control("member.0", Message::of(Release{}));
  };
  coordinator.undeliverable = [](Context&, Message, const Error&) {};
  coordinator.child_ended = [&](Context& context, const ChildEnd& end) {
    played.error = end.error;
    context.finish();
    return ChildDecision::kIgnore;
  };
  Play play;
  play.actor("coordinator", coordinator);
  play.actor("member.0", [] { return std::make_unique<Member>(); });
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  return played;
}

TEST(Member, LossOfANeighbourIsToldAndTheMemberStaysUntilItsRelease) {
  const Played played = play_member([](Context& context) {
    context.send_control("member.0", Message::of(PeerLost{"member.1", kClosed}));
  });
  EXPECT_THAT(played.told, ElementsAre("member.1: " + kClosed.message));
  EXPECT_TRUE(played.released);
  EXPECT_FALSE(played.error) << played.error->message;
}

TEST(Member, NeighbourThatLeavesChangesNothing) {
  const Played played = play_member([](Context& context) {
    context.send_control("member.0", Message::of(PeerLeft{"member.1"}));
  });
  EXPECT_THAT(played.told, IsEmpty());
  EXPECT_TRUE(played.released);
  EXPECT_FALSE(played.error) << played.error->message;
}

TEST(Member, ToldToEndItSaysSoAndStaysUntilItsRelease) {
  const Played played = play_member([](Context& context) { context.stop_child("member.0"); });
  EXPECT_THAT(played.told, ElementsAre("leaving"));
  EXPECT_TRUE(played.released);
  EXPECT_FALSE(played.error) << played.error->message;
}

TEST(Member, ExpelledItEndsWithTheCause) {
  const Played played = play_member([](Context& context) {
    context.send_control("member.0",
                         Message::of(Expelled{{ErrorKind::kLostPeers, "member.1 has lost it"}}));
  });
  EXPECT_FALSE(played.released);
  ASSERT_TRUE(played.error);
  EXPECT_EQ(played.error->kind, ErrorKind::kLostPeers);
  EXPECT_EQ(played.error->message, "member.0: member.1 has lost it");
}

TEST(Member, LossOfTheHeadEndsItWithTheCause) {
  const Played played = play_member([](Context& context) {
    context.send_control("member.0", Message::of(PeerLost{"head", kClosed}));
  });
  EXPECT_THAT(played.told, IsEmpty());
  EXPECT_FALSE(played.released);
  ASSERT_TRUE(played.error);
  EXPECT_EQ(played.error->kind, ErrorKind::kLostPeers);
  EXPECT_EQ(played.error->message, "member.0: " + kClosed.message);
}

// What a member whose head is not heard of any more came to, with a replica that answers so.
struct Orphan {
  std::optional<Error> error;
  bool asked = false;
  StatePointer state;
};

enum class Answer : std::uint8_t { kState, kGone, kNone };

Orphan play_orphan(const runtime::PeerLost& lost, Answer answer, const StatePointer& state) {
  Orphan orphan;
  Script coordinator;
  coordinator.start = [&](Context& context) { context.after(std::chrono::seconds(1)); };
  coordinator.timer = [&, told = false](Context& context, runtime::TimerId) mutable {
    if (!std::exchange(told, true)) {
      context.send_control("member.0", Message::of(PeerLost(lost)));
    }
    // However long it waits.
    context.post_progress();
    context.after(std::chrono::seconds(30));
  };
  coordinator.child_ended = [&](Context& context, const ChildEnd& end) {
    if (end.name != "member.0") return ChildDecision::kIgnore;
    orphan.error = end.error;
    context.finish();
    return ChildDecision::kIgnore;
  };
  Script replica;
  replica.start = [&](Context& context) {
    if (answer == Answer::kGone) context.fail({ErrorKind::kInternal, "it cannot"});
  };
  replica.receive = [&](Context& context, const Message& message) {
    ASSERT_NE(message.as<TellState>(), nullptr) << message.name();
    orphan.asked = true;
    if (answer == Answer::kNone) return;
    context.send_control(message.sender_name(), Message::of(OwnState{state}));
  };
  MemberOptions options;
  options.replica = "replica.0";
  Play play;
  play.actor("coordinator", coordinator);
  play.actor("member.0", [&] { return std::make_unique<Member>(options); });
  play.actor("replica.0", replica);
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  orphan.state = options.outcome->orphan_state;
  return orphan;
}

TEST(Member, WhoseHeadIsNotHeardOfEndsWithTheStateOfItsReplica) {
  const auto some = std::make_shared<const pipeline::TrainingState>();
  for (const StatePointer& state : {some, StatePointer()}) {
    const Orphan orphan = play_orphan({"head", kClosed, true}, Answer::kState, state);
    EXPECT_TRUE(orphan.asked);
    EXPECT_EQ(orphan.state, state);
    ASSERT_TRUE(orphan.error);
    EXPECT_EQ(orphan.error->message, "member.0: " + kClosed.message);
  }
}

TEST(Member, WhoseReplicaHasEndedEndsWithoutAState) {
  const Orphan orphan = play_orphan({"head", kClosed, true}, Answer::kGone, nullptr);
  EXPECT_EQ(orphan.state, nullptr);
  ASSERT_TRUE(orphan.error);
  EXPECT_EQ(orphan.error->message, "member.0: " + kClosed.message);
}

TEST(Member, WhoseReplicaNeverTellsItsStateEndsWithoutOne) {
  const Orphan orphan = play_orphan({"head", kClosed, true}, Answer::kNone, nullptr);
  EXPECT_TRUE(orphan.asked);
  EXPECT_EQ(orphan.state, nullptr);
  ASSERT_TRUE(orphan.error);
  EXPECT_EQ(orphan.error->message, "member.0: " + kClosed.message);
}

TEST(Member, WhomTheHeadRefusesAsksForNoState) {
  const Orphan orphan = play_orphan({"head", kClosed}, Answer::kState, nullptr);
  EXPECT_FALSE(orphan.asked);
  ASSERT_TRUE(orphan.error);
}

// The next coordinator has heard nothing of it.
TEST(Member, WhatItHasToldItTellsTheNextHeadAgain) {
  const Played played = play_member([](Context& context) {
    context.send_control("member.0", Message::of(PeerLost{"member.1", kClosed}));
    context.send_control("member.0", Message::of(PeerAway{"head", kClosed}));
    context.send_control("member.0", Message::of(PeerLost{"member.2", kClosed}));
    context.send_control("member.0", Message::of(PeerJoined{"head", "", "", 0}));
  });
  const std::string one = "member.1: " + kClosed.message, other = "member.2: " + kClosed.message;
  EXPECT_THAT(played.told, ElementsAre(one, other, one, other));
  EXPECT_TRUE(played.released);
  EXPECT_FALSE(played.error) << played.error->message;
}

TEST(Member, ItsReducerHearsWhichNeighboursTheNodeHasMet) {
  std::vector<std::string> met;
  Script coordinator;
  coordinator.start = [](Context& context) {
    for (const char* node : {"head", "member.2", "member.1"}) {
      context.send_control("member.0", Message::of(PeerJoined{node, "", "", 0}));
    }
    context.after(std::chrono::seconds(1));
  };
  coordinator.timer = [](Context& context, runtime::TimerId) {
    context.send_control("member.0", Message::of(Release{}));
  };
  coordinator.child_ended = [](Context& context, const ChildEnd& end) {
    if (end.name == "member.0") context.finish();
    return ChildDecision::kIgnore;
  };
  Script reducer;
  reducer.receive = [&](Context&, const Message& message) {
    met.push_back(message.as<NeighbourMet>()->node);
  };
  MemberOptions options;
  options.reducer = "reducer.0";
  Play play;
  play.actor("coordinator", coordinator);
  play.actor("member.0", [&] { return std::make_unique<Member>(options); });
  play.actor("reducer.0", reducer);
  EXPECT_FALSE(play.run(1).error);
  EXPECT_THAT(met, ElementsAre("member.2", "member.1"));
}

TEST(Member, ToldToEndWhileTheHeadIsAwayItEndsAtOnce) {
  for (const bool away_first : {true, false}) {
    const Played played = play_member([&](Context& context) {
      const auto lose = [&] {
        context.send_control("member.0", Message::of(PeerAway{"head", kClosed}));
      };
      if (away_first) lose();
      context.stop_child("member.0");
      if (!away_first) lose();
    });
    EXPECT_FALSE(played.released);
    EXPECT_FALSE(played.error) << played.error->message;
  }
}

TEST(Member, HeadThatLeavesWithoutReleasingItEndsIt) {
  const Played played = play_member(
      [](Context& context) { context.send_control("member.0", Message::of(PeerLeft{"head"})); });
  EXPECT_FALSE(played.released);
  ASSERT_TRUE(played.error);
  EXPECT_EQ(played.error->kind, ErrorKind::kLostPeers);
  EXPECT_EQ(played.error->message, "member.0: head has ended, and the run with it");
}

}  // namespace
}  // namespace troupe::actors
