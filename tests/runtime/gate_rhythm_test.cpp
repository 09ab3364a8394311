// The first node of many hears each of them seldom, and those that work together hear each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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
// With a rhythm of 4 s all have just spoken then, so that the next signs of life are far away.
constexpr TimePoint kThen = 17200ms;

// The first node, which is process 0, and n.1 to n.8, of which those up to n.6 stand in a ring:
// each sends the next a message at the beginning. Heartbeats are 500 ms and dead_after is 2 s.
class GateRhythm : public Gates {
 protected:
  GateRhythm() { make_plan(); }

  void make_plan() {
    plan_ = {};
    actor("a", "root.a", watching("a"));
    MeshPlan& mesh = plan_.meshes.emplace_back();
    mesh.port = "ring";
    mesh.tokens = 1;
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      const std::string node = name_of(i + 1);
      actor(node, "root." + node, watching(node));
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
  // A root that notes whom its node loses, and goes on.
  Script watching(const std::string& node) {
    Script script = root(node, 1);
    script.receive = [this, node](Context& context, Message message) {
      const auto* lost = message.as<PeerLost>();
      if (lost == nullptr) return;
      (node == "a" ? lost_at_a_ : lost_elsewhere_)[lost->node] = context.now();
    };
    return script;
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
  // Nobody hears it, nor does it hear anybody, for so long.
  void silence(ProcessId process, Duration time = 1000s) {
    for (ProcessId other = 0; other <= kNodes; ++other) {
      if (other != process) part(process, other, time);
    }
  }
  // Nobody hears it for so long.
  void mute(ProcessId process, Duration time) {
    for (ProcessId other = 0; other <= kNodes; ++other) {
      if (other != process) {
        world_->network().block(process, other, world_->clock().now() + time);
      }
    }
  }
  void part(ProcessId one, ProcessId other, Duration time) {
    world_->network().block(one, other, world_->clock().now() + time);
    world_->network().block(other, one, world_->clock().now() + time);
  }

  static constexpr std::uint32_t kRing = 6;
  std::map<std::string, TimePoint> lost_at_a_, lost_elsewhere_;
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

// With a rhythm of 4 s and no neighbours it would be lost after up to 5.5 s, as in the next test.
TEST_F(GateRhythm, PeerThatItsNeighboursMissIsLostNearlyAsSoonAsWithAShortRhythm) {
  add_all(1);
  world_->at(kThen, [&] { silence(3); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 1U);
  EXPECT_GT(lost_at_a_["n.3"], kThen + 2s);
  EXPECT_LT(lost_at_a_["n.3"], kThen + 3200ms);
}

TEST_F(GateRhythm, PeerWithoutNeighboursIsLostWhenItsSignOfLifeIsOverdue) {
  add_all(1);
  world_->at(kThen, [&] { silence(8); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 1U);
  EXPECT_GT(lost_at_a_["n.8"], kThen + 3200ms);
  EXPECT_LT(lost_at_a_["n.8"], kThen + 5600ms);
}

// n.8 has no neighbour, but is on the machine of n.3, which has.
TEST_F(GateRhythm, PeersOfTheSameMachineAreLookedAfterTogether) {
  add_all(1, [](ProcessId id) { return fmt::format("machine {}", id == 8 ? 3 : id); });
  world_->at(kThen, [&] { silence(3), silence(8); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 2U);
  EXPECT_LT(lost_at_a_["n.3"], kThen + 3200ms);
  EXPECT_LT(lost_at_a_["n.8"], kThen + 3200ms);
}

// They are patient with each other, but ask as soon as others.
TEST_F(GateRhythm, NeighboursOfTheSameMachineAskAsWell) {
  add_all(1, [](ProcessId id) { return id == 0 ? "head's" : "other"; });
  world_->at(kThen, [&] { silence(3); });
  EXPECT_FALSE(world_->run(35s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 1U);
  EXPECT_LT(lost_at_a_["n.3"], kThen + 3200ms);
}

// n.3 and n.5 have been missed themselves, and hear the first node often.
TEST_F(GateRhythm, PeersThatAreWatchedAskAfterOthers) {
  add_all(1, [](ProcessId id) { return fmt::format("machine {}", id == 5 ? 3 : id); });
  world_->at(kThen, [&] { part(3, 2, 1500ms); });
  world_->at(kThen + 4s, [&] { silence(4); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  ASSERT_EQ(lost_at_a_.size(), 1U);
  EXPECT_LT(lost_at_a_["n.4"], kThen + 4s + 3200ms);
}

// The neighbours know that it may be silent for 1.4 s. The first node, which does not, would give
// it up after 3.6 s.
TEST_F(GateRhythm, FirstNodeIsAsPatientAsTheOneThatAsks) {
  add_all(1);
  world_->at(kThen, [&] { part(3, 2, 1400ms), part(3, 4, 1400ms); });
  world_->at(kThen + 28s, [&] { mute(3, 4200ms); });
  EXPECT_FALSE(world_->run(70s)) << "nobody has ended";
  EXPECT_TRUE(lost_at_a_.empty());
  EXPECT_TRUE(lost_elsewhere_.empty());
}

// Neighbours that have asked wait for longer than the first node takes to find out.
TEST_F(GateRhythm, NobodyLosesAPeerThatTheFirstNodeKeeps) {
  add_all(1);
  world_->at(kThen, [&] { silence(3, 2500ms); });
  EXPECT_FALSE(world_->run(60s)) << "nobody has ended";
  EXPECT_TRUE(lost_at_a_.empty());
  EXPECT_TRUE(lost_elsewhere_.empty());
}

TEST_F(GateRhythm, WatchOverAPeerEnds) {
  add_all(1);
  int before = 0, meanwhile = 0, after = 0;
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    const TimePoint now = world_->clock().now();
    if (!std::holds_alternative<Heartbeat>(packet) || passage.from != 0 || passage.to != 3) return;
    if (now > 5s && now <= 15s) ++before;
    if (now > 25s && now <= 35s) ++meanwhile;
    if (now > 50s && now <= 60s) ++after;
  });
  world_->network().watch(tap);
  world_->at(kThen, [&] { part(3, 4, 1500ms); });
  EXPECT_FALSE(world_->run(60s)) << "nobody has ended";
  EXPECT_LE(before, 3);
  EXPECT_GE(meanwhile, 19);
  EXPECT_LE(after, 3);
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
  world_->at(kThen, [&] { part(3, 4, 1500ms); });
  EXPECT_FALSE(world_->run(60s)) << "nobody has ended";
  EXPECT_TRUE(lost_at_a_.empty());
  EXPECT_EQ(asked, 2) << "each asks after the other, once";
}

// The connection of n.4 to the first node breaks when it has asked, and while it waits.
TEST_F(GateRhythm, WhoMissesAPeerAsksAgainOverANewConnection) {
  add_all(1);
  int asked = 0;
  std::optional<sim::ConnectionId> to_first;
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    if (passage.from != 4 || passage.to != 0) return;
    to_first = passage.connection;
    asked += std::holds_alternative<Unheard>(packet) ? 1 : 0;
  });
  world_->network().watch(tap);
  world_->at(kThen, [&] { part(3, 4, 100s); });
  world_->at(kThen + 2500ms, [&] { world_->network().drop(*to_first); });
  EXPECT_FALSE(world_->run(30s)) << "nobody has ended";
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(lost_at_a_.empty());
  EXPECT_GT(lost_elsewhere_["n.3"], kThen + 3700ms) << "or sooner, had it forgotten that it asked";
}

TEST_F(GateRhythm, PeersThatCannotBeReachedOrHaveHungUpAreAskedAfter) {
  for (const bool hangs_up : {false, true}) {
    SCOPED_TRACE(hangs_up);
    make_world(1);
    make_plan();
    std::vector<std::pair<TimePoint, std::string>> asked;
    std::optional<sim::ConnectionId> between;
    Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
      if (std::minmax(passage.from, passage.to) == std::minmax<ProcessId>(3, 4)) {
        between = passage.connection;
      }
      const auto* unheard = std::get_if<Unheard>(&packet);
      if (unheard != nullptr) asked.emplace_back(world_->clock().now(), unheard->node);
    });
    world_->network().watch(tap);
    add_all(1);
    if (hangs_up) {
      world_->at(kThen, [&] { world_->network().drop(*between); });
    } else {
      world_->at(0s, [&] { part(3, 4, 40s); });
    }
    EXPECT_FALSE(world_->run(45s)) << "nobody has ended";
    ASSERT_EQ(asked.size(), hangs_up ? 2U : 1U);
    EXPECT_GE(asked[0].first, hangs_up ? kThen : 30s) << "half of the time that it is dialed";
    EXPECT_LT(asked[0].first, hangs_up ? kThen + 1s : 33s);
    EXPECT_TRUE(asked[0].second == "n.3" || asked[0].second == "n.4");
    world_.reset();
  }
}

TEST_F(GateRhythm, WithAShortRhythmNobodyAsksTheFirstNode) {
  add_all(32);
  Tap tap([&](const sim::Passage&, const AnyPacket& packet) {
    EXPECT_FALSE(std::holds_alternative<Unheard>(packet));
  });
  world_->network().watch(tap);
  world_->at(kThen, [&] { silence(3); });
  EXPECT_FALSE(world_->run(40s)) << "the first node goes on";
  EXPECT_EQ(lost_at_a_.size(), 1U);
}

}  // namespace
}  // namespace troupe::runtime
