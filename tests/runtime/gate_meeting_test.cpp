// Nodes that share links get a connection when one of them first needs it, and not before.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tests/runtime/neighbours.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessId;
using sim::ProcessSetup;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Notes which two processes have ever had a connection.
class Meetings final : public sim::NetworkWatcher {
 public:
  void connected(ConnectionId, ProcessId at, ProcessId other) override {
    pairs_.insert(std::minmax(at, other));
  }
  // But the first node's.
  std::set<std::pair<ProcessId, ProcessId>> among_others() const {
    auto pairs = pairs_;
    std::erase_if(pairs, [](const auto& pair) { return pair.first == 0; });
    return pairs;
  }

 private:
  std::set<std::pair<ProcessId, ProcessId>> pairs_;
};

// Nodes a (the first), b and c with a link each way, whose actors say and do what the test tells.
class GateMeeting : public NeighbourGates {
 protected:
  GateMeeting() { quiet(); }
  void quiet() {
    for (const std::string node : {"b", "c"}) {
      Script told;
      told.receive = [](Context& context, Message message) {
        const std::int64_t value = message.as<Number>()->value;
        if (value < 0) return context.meet(context.out("out"));
        context.send("out", Message::of(Number{value}));
      };
      told.stop = [](Context& context) { context.finish(); };
      scripts_["sender." + node] = told;
    }
    scripts_["receiver.b"] = noting_receiver(at_b_, 1000);
    scripts_["receiver.c"] = noting_receiver(at_c_, 1000);
    world_->network().watch(meetings_);
  }
  void add_all() {
    for (const char* node : {"a", "b", "c"}) add(node);
  }
  // Tells a sender to send the number, or to meet the other node if it is below 0.
  void tell(ProcessId process, const std::string& sender, std::int64_t number) {
    world_->node(process).send_control(sender, Message::of(Number{number}));
  }

  Meetings meetings_;
};

TEST_F(GateMeeting, NodesThatHaveNothingToSayHaveNoConnection) {
  add_all();
  stop_all_at(5s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(meetings_.among_others(), IsEmpty());
  EXPECT_THAT(told("b"), Not(HasSubstr("joined c")));
  EXPECT_EQ(error_of(0) + error_of(1) + error_of(2), "");
}

TEST_F(GateMeeting, WhatIsSaidBeforeTheConnectionStandsArrivesOnceAndInOrder) {
  int wanted = 0;
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    const auto* words = std::get_if<Wanted>(&packet);
    if (words == nullptr) return;
    ++wanted;
    EXPECT_EQ(passage.from, 2U);
    EXPECT_EQ(passage.to, 0U);
    EXPECT_THAT(words->nodes, ElementsAre("b"));
  });
  world_->network().watch(tap);
  add_all();
  std::size_t before = 99;
  world_->at(2s, [&] {
    before = meetings_.among_others().size();
    for (const std::int64_t number : {1, 2, 3}) tell(2, "sender.c", number);
  });
  world_->at(3s, [&] { tell(2, "sender.c", 4); });
  stop_all_at(5s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(before, 0U);
  EXPECT_THAT(at_b_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(wanted, 1);
  EXPECT_THAT(meetings_.among_others(), SizeIs(1));
  EXPECT_THAT(told("b") + told("c"), HasSubstr("joined b"));
}

TEST_F(GateMeeting, NodesMeetAheadOfTheFirstMessageWhenAnActorAsksForIt) {
  add_all();
  world_->at(1s, [&] { tell(1, "sender.b", -1); });
  stop_all_at(3s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(meetings_.among_others(), SizeIs(1));
  EXPECT_THAT(told("b"), HasSubstr("joined c"));
  EXPECT_THAT(told("c"), HasSubstr("joined b"));
  EXPECT_THAT(at_c_, IsEmpty());
}

// Nobody tells it again but the node itself, over the new connection.
TEST_F(GateMeeting, AWishThatTheFirstNodeCannotHearIsToldAgain) {
  add_all();
  world_->at(1s, [&] {
    for (const ConnectionId connection : world_->network().connections()) {
      world_->network().drop(connection);
    }
    tell(1, "sender.b", 7);
  });
  stop_all_at(10s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(at_c_, ElementsAre(7));
  EXPECT_EQ(error_of(0) + error_of(1) + error_of(2), "");
}

TEST_F(GateMeeting, ANodeThatHasNotComeIsMetWhenItComes) {
  ProcessSetup late;
  late.start = 3s;
  add("a");
  add("b");
  add("c", late);
  world_->at(1s, [&] { tell(1, "sender.b", 7); });
  stop_all_at(6s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(at_c_, ElementsAre(7));
}

TEST_F(GateMeeting, OnlyNeighboursMayBeAskedForAndOnlyOfTheFirstNode) {
  struct Case {
    const char* at;  // the node that is asked
    std::vector<std::string> nodes;
    std::string why;
  };
  const Case cases[] = {{"a", {"x"}, "it asked about 'x', with which it shares no link"},
                        {"a", {"b"}, "it asked about 'b', with which it shares no link"},
                        {"a", {"a"}, "it asked about 'a', with which it shares no link"},
                        {"c", {"b"}, "it asked about other nodes, of which only a tells"}};
  for (const Case& example : cases) {
    SCOPED_TRACE(example.why);
    make_world(1);
    make_plan();
    quiet();
    told_.clear();
    add("a");
    ProcessSetup setup;
    setup.gate.head_address = "sim://0";
    add("c", setup);
    Impostor b(*world_, "sim://impostor",
               [&](Impostor& self, ConnectionId on, const AnyPacket& said) {
                 if (const auto* welcome = std::get_if<Welcome>(&said)) {
                   if (welcome->node == example.at) self.say(on, pack(Wanted{example.nodes}));
                   if (welcome->node != example.at) self.say(on, pack(Heartbeat{1, 0}));
                 } else if (const auto* directory = std::get_if<Directory>(&said)) {
                   self.say(on, pack(DirectoryHeard{directory->edition}));
                 } else if (const auto* hello = std::get_if<Hello>(&said)) {
                   Welcome welcome;
                   static_cast<Introduction&>(welcome) =
                       hello_of("b", hello->incarnation, "sim://impostor");
                   self.say(on, pack(welcome));
                   self.say(on, pack(Wanted{example.nodes}));
                 }
               });
    b.dial("sim://0", hello_of("b", 99, "sim://impostor"));
    world_->at(1s, [&] { tell(1, "sender.c", -1); });
    stop_all_at(5s);
    EXPECT_TRUE(world_->run(60s));
    EXPECT_THAT(told(example.at), HasSubstr("lost b: b is lost: " + example.why));
    world_.reset();
  }
}

TEST_F(GateMeeting, OnlyNeighboursMayBeMissedAndOnlyTheFirstNodeSaysHowOftenToSpeak) {
  struct Case {
    Packet packet;
    std::string why;
  };
  const Case cases[] = {
      {pack(Unheard{"x"}), "it asked about 'x', with which it shares no link"},
      {pack(Unheard{"b"}), "it asked about 'b', with which it shares no link"},
      {pack(Heartbeat{1, 0, 1000}), "it said how often to speak, which only a may"}};
  for (const Case& example : cases) {
    SCOPED_TRACE(example.why);
    make_world(1);
    make_plan();
    quiet();
    told_.clear();
    add("a");
    Impostor b(*world_, "sim://impostor",
               [&](Impostor& self, ConnectionId on, const AnyPacket& said) {
                 if (std::holds_alternative<Welcome>(said)) self.say(on, example.packet);
               });
    b.dial("sim://0", hello_of("b", 99, "sim://impostor"));
    stop_all_at(5s);
    EXPECT_TRUE(world_->run(60s));
    EXPECT_THAT(told("a"), HasSubstr("lost b: b is lost: " + example.why));
    world_.reset();
  }
}

// So descriptors and what a node is told grow with those that it talks to.
TEST_F(GateMeeting, InAMeshOnlyThoseThatTalkAreConnected) {
  constexpr std::uint32_t kNodes = 8;
  plan_ = {};
  actor("a", "root.a", root("a", 1));
  MeshPlan& mesh = plan_.meshes.emplace_back();
  mesh.port = "ring";
  mesh.tokens = 1;
  std::vector<std::int64_t> heard[kNodes];
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    const std::string node = fmt::format("n.{}", i);
    actor(node, "root." + node, root(node, 1));
    Script script = noting_receiver(heard[i], 1000);
    script.start = [i](Context& context) {
      context.send(fmt::format("ring.{}", (i + 1) % kNodes), Message::of(Number{i}));
    };
    mesh.actors.push_back("ring." + node);
    actor(node, mesh.actors.back(), script);
  }
  std::size_t most_told = 0;
  Tap tap([&](const sim::Passage&, const AnyPacket& packet) {
    const auto* directory = std::get_if<Directory>(&packet);
    if (directory != nullptr) most_told = std::max(most_told, directory->entries.size());
  });
  world_->network().watch(tap);
  add("a");
  for (std::uint32_t i = 0; i < kNodes; ++i) add(fmt::format("n.{}", i));
  stop_all_at(5s);
  ASSERT_TRUE(world_->run(60s));
  std::set<std::pair<ProcessId, ProcessId>> ring;
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    EXPECT_THAT(heard[i], ElementsAre((i + kNodes - 1) % kNodes)) << i;
    ring.insert(std::minmax<ProcessId>(1 + i, 1 + (i + 1) % kNodes));
  }
  EXPECT_EQ(meetings_.among_others(), ring);
  EXPECT_EQ(most_told, 2U);
}

}  // namespace
}  // namespace troupe::runtime
