// How nodes that share links find each other through the plan's first one, whom they believe, and
// what becomes of those who cannot meet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/runtime/neighbours.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessSetup;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class GateDirectory : public NeighbourGates {
 protected:
  // Node b, whose first node is made by hand: it welcomes b and tells it this.
  void play_b_told(const std::vector<Directory>& directories) {
    ProcessSetup setup;
    setup.gate.head_address = "sim://impostor";
    add("b", setup);
    Impostor a(*world_, "sim://impostor",
               [&](Impostor& self, ConnectionId on, const AnyPacket& said) {
                 if (!std::holds_alternative<Hello>(said)) return;
                 Welcome welcome;
                 static_cast<Introduction&>(welcome) = hello_of("a", 3, "sim://impostor");
                 self.say(on, pack(welcome));
                 for (const Directory& each : directories) self.say(on, pack(each));
               });
    EXPECT_TRUE(world_->run(60s));
  }
};

TEST_F(GateDirectory, NeighboursMeetThroughTheFirstNodeAndTalk) {
  std::vector<std::string> said;
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    const auto note = [&](const std::string& what) {
      said.push_back(std::to_string(passage.from) + std::to_string(passage.to) + " " + what);
    };
    if (std::holds_alternative<Hello>(packet)) note("hello");
    if (std::holds_alternative<DirectoryHeard>(packet)) note("heard");
    if (const auto* directory = std::get_if<Directory>(&packet)) {
      for (const DirectoryEntry& entry : directory->entries) {
        note(entry.node + (entry.dial ? " dial" : ""));
      }
    }
  });
  world_->network().watch(tap);
  std::vector<DirectoryEntry> told_b;
  ProcessSetup setup_b, late;
  setup_b.keeper->told = [&](const std::vector<DirectoryEntry>& neighbours) {
    told_b = neighbours;
  };
  late.start = 1s;
  late.gate.incarnation = 77;
  add("a");
  add("b", setup_b);
  add("c", late);
  stop_all_at(5s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(at_b_, SizeIs(20));
  EXPECT_THAT(at_c_, SizeIs(20));
  EXPECT_EQ(error_of(0) + error_of(1) + error_of(2), "");
  ASSERT_THAT(told_b, SizeIs(1));
  EXPECT_EQ(told_b[0].node + " " + told_b[0].address, "c sim://2");
  // By that name the first node knows it, and nobody else.
  EXPECT_NE(told_b[0].incarnation, 77U);
  EXPECT_THAT(told("b"), HasSubstr("joined c"));
  // b is not dialed before it has heard of c.
  const auto at = [&](const std::string& what) {
    const auto found = std::find(said.begin(), said.end(), what);
    EXPECT_NE(found, said.end()) << what;
    return std::distance(said.begin(), found);
  };
  EXPECT_LT(at("01 c"), at("10 heard"));
  EXPECT_LT(at("10 heard"), at("02 b dial"));
  EXPECT_LT(at("02 b dial"), at("21 hello"));
  EXPECT_THAT(said, Not(::testing::Contains("12 hello")));
}

TEST_F(GateDirectory, ANewConnectionIsToldAnew) {
  int directories = 0;
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    if (passage.to == 2 && std::holds_alternative<Directory>(packet)) ++directories;
  });
  world_->network().watch(tap);
  for (const char* node : {"a", "b", "c"}) add(node);
  int before = 0;
  world_->at(1s, [&] {
    before = directories;
    for (const ConnectionId connection : world_->network().connections()) {
      world_->network().drop(connection);
    }
  });
  stop_all_at(5s);
  // They end when they have what they wait for; these wait longer.
  scripts_["receiver.c"] = {};
  scripts_["receiver.b"] = {};
  ASSERT_TRUE(world_->run(60s));
  EXPECT_GT(before, 0);
  EXPECT_GT(directories, before);
  EXPECT_EQ(error_of(0) + error_of(1) + error_of(2), "");
}

TEST_F(GateDirectory, WhoeverTheFirstNodeHasNotToldOfIsRefused) {
  struct Case {
    TimePoint start_of_c;
    std::string refusal;
  };
  const Case cases[] = {{0s, "c is another process than a has told of"},
                        {10s, "b has not been told of c yet"}};
  for (const Case& example : cases) {
    SCOPED_TRACE(example.refusal);
    make_world(1);
    make_plan();
    scripts_["receiver.b"] = scripts_["receiver.c"] = {};
    add("a");
    add("b");
    ProcessSetup setup;
    setup.start = example.start_of_c;
    add("c", setup);
    Impostor impostor(*world_, "sim://impostor", hear_nothing);
    world_->at(1s, [&] { impostor.dial("sim://1", hello_of("c", 99, "sim://impostor")); });
    stop_all_at(2s);
    stop_all_at(11s);
    EXPECT_TRUE(world_->run(60s));
    EXPECT_EQ(impostor.refused(), example.refusal);
    EXPECT_THAT(told("b"), Not(HasSubstr("lost")));
    world_.reset();
    told_.clear();
  }
}

TEST_F(GateDirectory, OnlyTheFirstNodeMayTellOfOthers) {
  add("a");
  add("b");
  Impostor c(*world_, "sim://impostor", [](Impostor& self, ConnectionId on, const AnyPacket& said) {
    if (const auto* directory = std::get_if<Directory>(&said)) {
      self.say(on, pack(DirectoryHeard{directory->edition}));
      if (directory->entries[0].dial) {
        self.dial(directory->entries[0].address,
                  hello_of("c", directory->entries[0].incarnation, "sim://impostor"));
      }
    } else if (const auto* welcome = std::get_if<Welcome>(&said)) {
      if (welcome->node == "b") self.say(on, pack(Directory{1, {{"c", "sim://9", "", 5, false}}}));
    }
  });
  c.dial("sim://0", hello_of("c", 99, "sim://impostor"));
  stop_all_at(10s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(error_of(1), "root.b: c is lost: it told of other nodes, which only a may");
}

TEST_F(GateDirectory, AFirstNodeThatContradictsItselfOrTellsOfUnknownPeersIsLost) {
  struct Case {
    std::vector<DirectoryEntry> second;
    std::string why;
  };
  const Case cases[] = {
      {{{"c", "sim://9", "", 6, false}}, "a is lost: it told of another process in the place of c"},
      {{{"c", "sim://8", "", 5, false}}, "a is lost: it told of another process in the place of c"},
      {{{"c", "sim://9", "k", 5, false}},
       "a is lost: it told of another process in the place of c"},
      {{{"x", "sim://9", "", 5, false}}, "a is lost: it told of 'x', which shares no link with b"},
      {{{"b", "sim://9", "", 5, false}}, "a is lost: it told of 'b', which shares no link with b"},
      {{{"a", "sim://9", "", 5, false}}, "a is lost: it told of 'a', which shares no link with b"}};
  for (const Case& example : cases) {
    SCOPED_TRACE(example.why);
    make_world(1);
    make_plan();
    told_.clear();
    const Directory first{1, {{"c", "sim://9", "", 5, false}}};
    play_b_told({first, first, {2, example.second}});  // hearing it twice changes nothing
    EXPECT_EQ(error_of(0), "root.b: " + example.why);
    world_.reset();
  }
}

TEST_F(GateDirectory, AnAnswerToWhatWasNotToldCostsThePlace) {
  add("a");
  Impostor b(*world_, "sim://impostor", [](Impostor& self, ConnectionId on, const AnyPacket& said) {
    if (std::holds_alternative<Welcome>(said)) self.say(on, pack(DirectoryHeard{7}));
  });
  b.dial("sim://0", hello_of("b", 99, "sim://impostor"));
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(error_of(0), "root.a: b is lost: it answered what it was not told");
}

// What every two know each other by is told to no third one, and is nothing to the first node.
TEST_F(GateDirectory, EveryTwoNeighboursKnowEachOtherByWhatNobodyElseKnows) {
  actor("d", "root.d", root("d", 1));
  for (const std::string other : {"b", "c"}) {
    actor("d", "to." + other, counting_sender(1));
    actor(other, "from.d." + other, {});
    link("to." + other, "from.d." + other, 3);
  }
  std::map<std::pair<std::string, std::string>, std::uint64_t> told;
  const std::vector<std::string> nodes = {"a", "b", "c", "d"};
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    const auto* directory = std::get_if<Directory>(&packet);
    if (directory == nullptr) return;
    for (const DirectoryEntry& entry : directory->entries) {
      if (entry.incarnation != 0) told[{nodes[passage.to], entry.node}] = entry.incarnation;
    }
  });
  world_->network().watch(tap);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ProcessSetup setup;
    setup.gate.incarnation = 70 + i;
    add(nodes[i], setup);
  }
  stop_all_at(5s);
  ASSERT_TRUE(world_->run(60s));
  ASSERT_THAT(told, SizeIs(6));
  std::set<std::uint64_t> different;
  for (const auto& [who, incarnation] : told) {
    EXPECT_EQ(incarnation, (told[{who.second, who.first}])) << who.first << " " << who.second;
    EXPECT_FALSE(incarnation >= 70 && incarnation < 74);
    different.insert(incarnation);
  }
  EXPECT_THAT(different, SizeIs(3));
}

// All have the same key here, as those have who came with one token.
TEST_F(GateDirectory, ANeighbourCannotTakeAnothersPlaceAtTheFirstNode) {
  add("a");
  ProcessSetup setup;
  setup.gate.head_address = "sim://0";
  add("c", setup);
  bool posed = false;
  int welcomes = 0;
  Impostor b(*world_, "sim://impostor", [&](Impostor& self, ConnectionId, const AnyPacket& said) {
    if (std::holds_alternative<Welcome>(said)) ++welcomes;
    const auto* directory = std::get_if<Directory>(&said);
    if (directory == nullptr || std::exchange(posed, true)) return;
    const DirectoryEntry& c = directory->entries[0];
    self.dial("sim://0", hello_of("c", c.incarnation, "sim://impostor"));
  });
  b.dial("sim://0", hello_of("b", 99, "sim://impostor"));
  stop_all_at(1s);
  (void)world_->run(60s);
  EXPECT_TRUE(posed);
  EXPECT_EQ(welcomes, 1);
  EXPECT_THAT(b.refused(), HasSubstr("c is taken by"));
  EXPECT_THAT(told("a"), Not(HasSubstr("lost c")));
}

TEST_F(GateDirectory, WhoeverHasMetThisProcessMustKnowItWhenItComesAgain) {
  for (const bool speaks : {false, true}) {
    SCOPED_TRACE(speaks);
    make_world(1);
    make_plan();
    add("a");
    int welcomes = 0;
    Impostor b(*world_, "sim://impostor",
               [&](Impostor& self, ConnectionId on, const AnyPacket& said) {
                 if (!std::holds_alternative<Welcome>(said)) return;
                 ++welcomes;
                 if (speaks) self.say(on, pack(Heartbeat{1}));
               });
    b.dial("sim://0", hello_of("b", 99, "sim://impostor"));
    // Once more as one that has heard nothing.
    world_->at(500ms, [&] { b.dial("sim://0", hello_of("b", 99, "sim://impostor")); });
    stop_all_at(1s);
    EXPECT_TRUE(world_->run(60s));
    EXPECT_EQ(welcomes, speaks ? 1 : 2);
    EXPECT_EQ(b.refused(), speaks ? "b is taken by process 0 on " : "");
    world_.reset();
  }
}

TEST_F(GateDirectory, ANodeThatIsToldOfTwiceAtOnceCostsTheFirstItsPlace) {
  play_b_told({{1, {{"c", "sim://9", "", 5, false}, {"c", "sim://8", "", 6, false}}}});
  EXPECT_EQ(error_of(0), "root.b: a is lost: it told of c twice");
}

// c has not acknowledged what b sent, and never will.
TEST_F(GateDirectory, AnEndThatANeighbourHoldsUpIsStillToldToTheFirstNode) {
  scripts_["receiver.b"] = scripts_["receiver.c"] = {};
  for (const char* node : {"a", "b", "c"}) {
    ProcessSetup setup;
    setup.gate.dead_after = 100s;
    add(node, setup);
  }
  world_->at(2s, [&] {
    world_->network().block(2, 1, 100s);
    world_->node(1).send_control("receiver.c", Message::of(Number{7}));
  });
  world_->at(2100ms, [&] { world_->node(1).request_stop(); });
  std::string told_a;
  world_->at(20s, [&] { told_a = told("a"); });
  stop_all_at(21s);
  ASSERT_TRUE(world_->run(300s));
  EXPECT_THAT(told_a, HasSubstr("left b"));
}

// Its connection may close before or after the first node says so.
TEST_F(GateDirectory, ANeighbourThatTheFirstNodeGoesOnWithoutIsLostAsSoonAsItsConnectionCloses) {
  for (const Duration hears : {900ms, 1500ms}) {
    SCOPED_TRACE(seconds(hears));
    make_world(1);
    told_.clear();
    make_plan();
    scripts_["receiver.b"] = scripts_["receiver.c"] = {};
    scripts_["root.a"].start = [hears](Context& context) { (void)context.after(hears); };
    scripts_["root.a"].timer = [](Context& context, TimerId) { context.go_on_without("c"); };
    scripts_["root.a"].receive = {};
    for (const char* node : {"a", "b", "c"}) add(node);
    world_->at(1s, [&] { world_->kill(2); });
    stop_all_at(5s);
    ASSERT_TRUE(world_->run(60s));
    ASSERT_THAT(told_["b"], SizeIs(3)) << told("b");
    EXPECT_THAT(told_["b"][2].what, HasSubstr("lost c: c is lost: its connection closed"));
    EXPECT_GE(told_["b"][2].when, std::max<Duration>(hears, 1s));
    EXPECT_LT(told_["b"][2].when, std::max<Duration>(hears, 1s) + 200ms);
    world_.reset();
  }
}

TEST_F(GateDirectory, ANeighbourThatDoesNotListenAndIsToBeDialedIsLostWithItsCause) {
  play_b_told({{1, {{"c", "", "", 5, true}}}});
  EXPECT_EQ(error_of(0), "root.b: c does not listen, so that b cannot reach it");
}

TEST_F(GateDirectory, ANeighbourThatDoesNotAnswerIsLostWithItsCause) {
  ProcessSetup setup;
  setup.gate.dial_within = 5s;
  for (const char* node : {"a", "b"}) add(node);
  add("c", setup);
  world_->network().block(1, 2, 50s);
  stop_all_at(20s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(error_of(2), HasSubstr("root.c: b does not answer at sim://1 (tried for 5 s)"));
}

// Nobody else would ever tell c.
TEST_F(GateDirectory, WhatWasSentToANeighbourThatEndedBeforeTheyMetComesBack) {
  scripts_["root.b"].receive = [](Context& context, Message message) {
    if (message.as<PeerJoined>() != nullptr) context.finish();
  };
  scripts_["sender.b"] = {};  // it has nothing to say for which b would wait
  std::string cause;
  scripts_["sender.c"].undeliverable = [&](Context& context, Message, const Error& error) {
    cause = error.message;
    context.finish();
  };
  scripts_["receiver.c"] = {};
  scripts_["receiver.c"].start = [](Context& context) { context.finish(); };
  add("a");
  add("b");
  ProcessSetup late;
  late.start = 1s;
  add("c", late);
  stop_all_at(20s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(cause, "b has ended");
  EXPECT_THAT(told("c"), HasSubstr("left b"));
  EXPECT_EQ(error_of(2), "");
}

}  // namespace
}  // namespace troupe::runtime
