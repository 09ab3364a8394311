// Nodes that nobody can dial: of two that share links the one that can be dialed is, whichever the
// plan names first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/neighbours.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessId;
using sim::ProcessSetup;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class GateOutbound : public NeighbourGates {
 protected:
  GateOutbound() : tap_([this](const auto& passage, const auto& said) { note(passage, said); }) {}
  void watch() { world_->network().watch(tap_); }
  ProcessId add_outbound(const std::string& node, TimePoint start = TimePoint{0}) {
    ProcessSetup setup;
    setup.listens = false;
    setup.start = start;
    return add(node, setup);
  }
  // "0 dials 1", for every two of which one did.
  std::set<std::string> dials_;

 private:
  void note(const sim::Passage& passage, const AnyPacket& said) {
    if (!std::holds_alternative<Hello>(said)) return;
    dials_.insert(std::to_string(passage.from) + " dials " + std::to_string(passage.to));
  }
  Tap tap_;
};

TEST_F(GateOutbound, TheOneThatDoesNotListenDialsWhicheverComesFirst) {
  for (const std::string outbound : {"b", "c"}) {
    for (const TimePoint late : {0s, 1s}) {
      SCOPED_TRACE(outbound);
      make_world(1);
      dials_.clear();
      at_b_.clear();
      at_c_.clear();
      make_plan();
      watch();
      add("a");
      const bool is_b = outbound == "b";
      is_b ? add_outbound("b", late) : add("b");
      is_b ? add("c") : add_outbound("c", late);
      stop_all_at(5s);
      EXPECT_TRUE(world_->run(60s));
      EXPECT_EQ(error_of(0) + error_of(1) + error_of(2), "");
      EXPECT_THAT(at_b_, SizeIs(20));
      EXPECT_THAT(at_c_, SizeIs(20));
      EXPECT_THAT(dials_, ElementsAre("1 dials 0", is_b ? "1 dials 2" : "2 dials 0",
                                      is_b ? "2 dials 0" : "2 dials 1"));
      world_.reset();
    }
  }
}

// And both return to another process in the place of the first node, in the roles they have.
TEST_F(GateOutbound, AnotherFirstNodeFindsThemAsTheyAre) {
  scripts_["receiver.b"] = scripts_["receiver.c"] = {};
  const auto first = [&](std::uint64_t incarnation, TimePoint start) {
    ProcessSetup setup;
    setup.address = "sim://0";
    setup.start = start;
    setup.gate.incarnation = incarnation;
    if (incarnation != 11) setup.gate.predecessors = {11};
    return add("a", setup);
  };
  watch();
  first(11, TimePoint{0});
  const auto returning = [&](const std::string& node, bool listens) {
    ProcessSetup setup;
    setup.listens = listens;
    setup.gate.head_returns_within = 60s;
    add(node, setup);
  };
  returning("b", false);
  returning("c", true);
  world_->at(1s, [&] {
    world_->kill(0);
    first(13, 4s);
  });
  // Between the neighbours too.
  world_->at(8s, [&] {
    for (const ConnectionId connection : world_->network().connections()) {
      world_->network().drop(connection);
    }
  });
  std::string states;
  world_->at(12s, [&] {
    for (const ProcessId id : {1, 2}) {
      for (const PeerStats& peer : world_->node(id).peer_stats()) states += peer.state + " ";
    }
  });
  stop_all_at(13s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(states, "up up up up ");
  EXPECT_EQ(error_of(1) + error_of(2) + error_of(3), "");
  EXPECT_THAT(dials_, ElementsAre("1 dials 0", "1 dials 2", "1 dials 3", "2 dials 0", "2 dials 3"));
}

TEST_F(GateOutbound, OfTwoThatNobodyCanDialTheSecondIsRefusedAndMayListenAndComeAgain) {
  add("a");
  add_outbound("b");
  ProcessSetup late;
  late.start = 2s;
  add("c", late);
  Impostor c(*world_, "sim://impostor", hear_nothing);
  world_->at(1s, [&] { c.dial("sim://0", hello_of("c", 99, "")); });
  std::string told_a;
  world_->at(1900ms, [&] { told_a = told("a"); });
  stop_all_at(6s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(c.refused(),
            "c and b cannot have a connection, as neither can dial the other: c does not listen, "
            "and b does not listen; start c with --listen HOST:PORT, at an address where b reaches "
            "it");
  EXPECT_THAT(told_a, AllOf(HasSubstr("joined b"), Not(HasSubstr("c"))));
  EXPECT_THAT(at_b_, SizeIs(20));
  EXPECT_THAT(at_c_, SizeIs(20));
}

}  // namespace
}  // namespace troupe::runtime
