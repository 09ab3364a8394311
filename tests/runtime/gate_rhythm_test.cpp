// The first node of many hears each of them seldom, and those that work together hear each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessId;
using sim::ProcessSetup;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint32_t kNodes = 8;

// The first node, which is process 0, and n.1 to n.8, of which those up to n.6 stand in a ring:
// each sends the next a message at the beginning. Heartbeats are 500 ms and dead_after is 2 s.
class GateRhythm : public Gates {
 protected:
  GateRhythm() { make_plan(); }

  void make_plan() {
    plan_ = {};
    Script watcher = root("a", 1);
    watcher.receive = [this](Context& context, Message message) {
      if (const auto* lost = message.as<PeerLost>()) lost_at_a_[lost->node] = context.now();
    };
    actor("a", "root.a", watcher);
    MeshPlan& mesh = plan_.meshes.emplace_back();
    mesh.port = "ring";
    mesh.tokens = 1;
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      const std::string node = name_of(i + 1);
      Script watched = root(node, 1);
      watched.receive = [](Context&, Message) {};
      actor(node, "root." + node, watched);
      Script script;
      script.receive = [](Context&, Message) {};
      if (i < kRing) {
        script.start = [i](Context& context) {
          context.send(fmt::format("ring.{}", (i + 1) % kRing), Message::of(Number{1}));
        };
      }
      mesh.actors.push_back("ring." + node);
      actor(node, mesh.actors.back(), script);
    }
  }
  static std::string name_of(ProcessId process) { return fmt::format("n.{}", process); }
  // `machine`: of each process.
  void add_all(std::size_t peers_a_beat, const std::function<std::string(ProcessId)>& machine) {
    for (ProcessId id = 0; id <= kNodes; ++id) {
      ProcessSetup setup;
      setup.gate.peers_a_beat = peers_a_beat;
      setup.gate.machine = machine(id);
      add(id == 0 ? "a" : name_of(id), setup);
    }
  }
  void add_all(std::size_t peers_a_beat) {
    add_all(peers_a_beat, [](ProcessId id) { return fmt::format("machine {}", id); });
  }
  // Nobody hears it any more, nor does it hear anybody.
  void silence(ProcessId process) {
    for (ProcessId other = 0; other <= kNodes; ++other) {
      if (other == process) continue;
      world_->network().block(process, other, 1000s);
      world_->network().block(other, process, 1000s);
    }
  }

  static constexpr std::uint32_t kRing = 6;
  std::map<std::string, TimePoint> lost_at_a_;
};

TEST_F(GateRhythm, FirstNodeAndItsPeersSpeakAsSeldomAsThereAreManyOfThem) {
  for (const std::size_t peers_a_beat : {32U, 8U, 4U, 2U}) {
    SCOPED_TRACE(peers_a_beat);
    make_world(1);
    make_plan();
    int from_first = 0, to_first = 0, others = 0;
    Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
      if (!std::holds_alternative<Heartbeat>(packet) || world_->clock().now() < 20s) return;
      (passage.from == 0 ? from_first : passage.to == 0 ? to_first : others) += 1;
    });
    world_->network().watch(tap);
    add_all(peers_a_beat);
    EXPECT_FALSE(world_->run(40s)) << "nobody has ended";
    // In 20 s, with 8 peers.
    const int wanted = 20 * 2 * static_cast<int>(std::min<std::size_t>(peers_a_beat, kNodes));
    EXPECT_NEAR(from_first, wanted, 0.15 * wanted);
    EXPECT_NEAR(to_first, wanted, 0.15 * wanted);
    EXPECT_NEAR(others, 20 * 2 * 2 * kRing, 20) << "six pairs, both ways";
    EXPECT_TRUE(lost_at_a_.empty());
    world_.reset();
  }
}

// With a rhythm of 4 s it would be lost after 5.5 to 6 s.
TEST_F(GateRhythm, PeerThatItsNeighboursMissIsLostNearlyAsSoonAsWithAShortRhythm) {
  add_all(1);
  world_->at(21s, [&] { silence(3); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 1U);
  ASSERT_TRUE(lost_at_a_.contains("n.3"));
  EXPECT_GT(lost_at_a_["n.3"], 21s + 2s);
  EXPECT_LT(lost_at_a_["n.3"], 21s + 3800ms);
}

TEST_F(GateRhythm, PeerWithoutNeighboursIsLostWhenItsSignOfLifeIsOverdue) {
  add_all(1);
  world_->at(21s, [&] { silence(8); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 1U);
  EXPECT_LT(lost_at_a_["n.8"], 21s + 6s);
}

// n.8 has no neighbour, but is on the machine of n.3, which has.
TEST_F(GateRhythm, PeersOfTheSameMachineAreLookedAfterTogether) {
  add_all(1, [](ProcessId id) { return fmt::format("machine {}", id == 8 ? 3 : id); });
  world_->at(21s, [&] { silence(3), silence(8); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 2U);
  EXPECT_LT(lost_at_a_["n.3"], 21s + 3800ms);
  EXPECT_LT(lost_at_a_["n.8"], 21s + 3800ms);
}

TEST_F(GateRhythm, PeerThatOnlyItsNeighbourCannotHearIsKept) {
  add_all(1);
  int asked = 0;
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    if (!std::holds_alternative<Unheard>(packet)) return;
    ++asked;
    EXPECT_EQ(passage.to, 0U);
  });
  world_->network().watch(tap);
  world_->at(21s, [&] {
    world_->network().block(3, 4, 1500ms + 21s);
    world_->network().block(4, 3, 1500ms + 21s);
  });
  EXPECT_FALSE(world_->run(60s)) << "nobody has ended";
  EXPECT_TRUE(lost_at_a_.empty());
  EXPECT_EQ(asked, 2) << "each asks after the other, once";
}

TEST_F(GateRhythm, WithAShortRhythmNobodyAsksTheFirstNode) {
  add_all(32);
  Tap tap([&](const sim::Passage&, const AnyPacket& packet) {
    EXPECT_FALSE(std::holds_alternative<Unheard>(packet));
  });
  world_->network().watch(tap);
  world_->at(21s, [&] { silence(3); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  EXPECT_EQ(lost_at_a_.size(), 1U);
}

}  // namespace
}  // namespace troupe::runtime
