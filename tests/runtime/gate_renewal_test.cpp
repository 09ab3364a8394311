// Nodes in whose place another process comes: nothing of the one before is taken for the next.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/runtime/neighbours.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessId;
using sim::ProcessSetup;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Senders of nodes b and c say numbers from 0 on, ten a second. When a has lost c, or c has left,
// the next process may come there, called c.2.
class GateRenewal : public NeighbourGates {
 protected:
  GateRenewal() {
    scripts_["root.a"] = noting_root("a", true);
    scripts_["root.b"] = noting_root("b", false);
    scripts_["root.c"] = noting_root("c", false);
    scripts_["sender.b"] = scripts_["sender.c"] = ticking();
    scripts_["receiver.b"] = noting_receiver(at_b_, 100'000);
    scripts_["receiver.c"] = noting_receiver(at_c_, 100'000);
    stop_all_at(30s);
  }

  Script noting_root(const std::string& node, bool awaits) {
    Script script;
    script.receive = [this, node, awaits](Context& context, Message message) {
      std::string gone;
      if (const auto* joined = message.as<PeerJoined>()) lines_[node].push_back("+" + joined->node);
      if (const auto* left = message.as<PeerLeft>()) gone = left->node;
      if (const auto* lost = message.as<PeerLost>()) gone = lost->node;
      if (gone.empty()) return;
      lines_[node].push_back("-" + gone);
      if (gone == "a") context.fail({ErrorKind::kLostPeers, message.as<PeerLost>()->error.message});
      if (awaits && gone == "c") context.await_another("c", "c.2");
    };
    script.child_ended = [](Context&, const ChildEnd&) { return ChildDecision::kIgnore; };
    return script;
  }
  Script ticking() {
    Script script;
    script.start = [](Context& context) { context.after(100ms); };
    script.timer = [n = 0](Context& context, TimerId) mutable {
      Message message = Message::of(Number{n});
      if (context.send("out", message)) ++n;
      context.after(100ms);
    };
    script.undeliverable = [this](Context&, Message, const Error&) { ++came_back_; };
    return script;
  }
  ProcessId add_second(TimePoint start) {
    ProcessSetup setup;
    setup.gate.node = "c.2";
    setup.start = start;
    setup.gate.incarnation = 3;
    return add("c", setup);
  }
  void expect_taken_over() {
    EXPECT_THAT(lines_["a"], AllOf(Contains("+c"), Contains("-c"), Contains("+c.2")));
    ASSERT_GE(lines_["b"].size(), 4U);
    EXPECT_EQ(std::vector(lines_["b"].begin(), lines_["b"].begin() + 4),
              (std::vector<std::string>{"+a", "+c", "-c", "+c.2"}));
    // The next process is heard from its first word on, and every word once.
    const auto again = std::find(at_b_.begin() + 1, at_b_.end(), 0);
    ASSERT_NE(again, at_b_.end());
    EXPECT_GT(at_b_.end() - again, 100);
    for (auto each = again; each != at_b_.end(); ++each) ASSERT_EQ(*each, each - again);
    EXPECT_GT(*std::max_element(at_c_.begin(), at_c_.end()), 200) << "said to both";
  }

  std::map<std::string, std::vector<std::string>> lines_;
  int came_back_ = 0;
};

TEST_F(GateRenewal, LinksToTheNextProcessBeginAnew) {
  add("a");
  add("b");
  const ProcessId first = add("c");
  add_second(6s);
  world_->at(1s, [&] { world_->kill(first); });
  ASSERT_TRUE(world_->run(60s));
  expect_taken_over();
  EXPECT_TRUE(std::is_sorted(at_c_.begin(), at_c_.end()));
  EXPECT_GT(came_back_, 0) << "what was said to nobody";
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

// The next process has nothing to say, so nobody else makes the two meet.
TEST_F(GateRenewal, WhoHasSomethingToSayToTheNextProcessIsToldOfIt) {
  scripts_["sender.c"] = {};
  add("a");
  add("b");
  const ProcessId first = add("c");
  add_second(6s);
  world_->at(1s, [&] { world_->kill(first); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(lines_["b"], Contains("+c.2"));
  EXPECT_GT(at_c_.back(), 200);
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

TEST_F(GateRenewal, ProcessThatWakesWhenItsPlaceIsAnotherOnesIsRefusedAndDisturbsNobody) {
  for (const Duration pause : {5s, 9s, 14s}) {
    SCOPED_TRACE(seconds(pause));
    make_world(1);
    lines_.clear();
    at_b_.clear(), at_c_.clear();
    stop_all_at(30s);
    add("a");
    add("b");
    const ProcessId first = add("c");
    add_second(6s);
    world_->at(1s, [&] { world_->pause(first, 1s + pause); });
    ASSERT_TRUE(world_->run(60s));
    expect_taken_over();
    EXPECT_EQ(error_of(0) + error_of(1) + error_of(3), "");
    EXPECT_THAT(error_of(first), HasSubstr("the run has gone on without c"));
    EXPECT_THAT(lines_["a"], Not(Contains("-c.2")));
    world_.reset();
  }
}

TEST_F(GateRenewal, WhoComesInThePlaceOfOneThatOthersWentOnWithoutMayBreakOff) {
  scripts_["root.a"].start = [](Context& context) { (void)context.after(900ms); };
  scripts_["root.a"].timer = [](Context& context, TimerId) { context.go_on_without("c"); };
  add("a");
  add("b");
  const ProcessId first = add("c");
  add_second(2s);
  world_->at(1s, [&] { world_->kill(first); });
  world_->at(5s, [&] {
    for (const ConnectionId each : world_->network().connections()) world_->network().drop(each);
  });
  std::map<std::string, std::vector<std::string>> lines;
  world_->at(20s, [&] { lines = lines_; });
  ASSERT_TRUE(world_->run(60s));
  expect_taken_over();
  EXPECT_THAT(lines["a"], Not(Contains("-c.2")));
  EXPECT_THAT(lines["b"], Not(Contains("-c.2")));
}

// Between the two nobody is there, and one that comes under the name of the first is refused.
TEST_F(GateRenewal, NobodyElseComesUnderTheNameOfTheNext) {
  add("a");
  add("b");
  const ProcessId first = add("c");
  world_->at(1s, [&] { world_->kill(first); });
  Impostor impostor(*world_, "sim://impostor", hear_nothing);
  std::string before;
  world_->at(6s, [&] { impostor.dial("sim://0", hello_of("c", 99, "sim://impostor")); });
  world_->at(7s, [&] {
    before = impostor.refused();
    impostor.dial("sim://0", hello_of("c.3", 99, "sim://impostor"));
  });
  (void)world_->run(60s);
  EXPECT_EQ(before, "the run has gone on without c");
  EXPECT_EQ(impostor.refused(), "the run has gone on without c.3");
}

// It takes the place of another first node, and is told who is called how.
TEST_F(GateRenewal, NextFirstNodeKnowsWhatProcessesAreCalled) {
  ProcessSetup head;
  head.gate.called = {{"c", "c.2"}};
  add("a", head);
  add("b");
  const ProcessId first = add("c");
  add_second(2s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(error_of(first), HasSubstr("the run has gone on without c"));
  EXPECT_THAT(lines_["b"], ElementsAre("+a", "+c.2"));
  EXPECT_THAT(at_b_, Not(SizeIs(0)));
  EXPECT_EQ(error_of(0) + error_of(1) + error_of(3), "");
}

// The process has never come to the next first node.
TEST_F(GateRenewal, NeighboursHearFromTheNextFirstNodeThatItGoesOnWithoutOne) {
  ProcessSetup head;
  head.gate.incarnation = 11;
  head.address = "sim://0";
  const ProcessId first_head = add("a", head);
  ProcessSetup other;
  other.gate.head_returns_within = 60s;
  other.gate.dead_after = 20s;
  add("b", other);
  const ProcessId lost = add("c");
  world_->at(1s, [&] {
    world_->kill(first_head);
    world_->kill(lost);
    head.gate.incarnation = 12;
    head.gate.predecessors = {11};
    head.start = 2s;
    scripts_["root.a"].start = [](Context& context) { (void)context.after(1s); };
    scripts_["root.a"].timer = [](Context& context, TimerId) { context.go_on_without("c"); };
    add("a", head);
  });
  std::vector<std::string> lines;
  world_->at(5s, [&] { lines = lines_["b"]; });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(lines, ElementsAre("+a", "+c", "+a", "-c"));
}

// It asks the next first node for the earlier process, whose place is meant.
TEST_F(GateRenewal, WhoHasLostTheEarlierProcessBeforeItMeetsTheNextFirstNodeMeetsTheNextProcess) {
  scripts_["sender.c"] = {};
  ProcessSetup head;
  head.gate.incarnation = 11;
  head.address = "sim://0";
  const ProcessId first_head = add("a", head);
  ProcessSetup other;
  other.gate.head_returns_within = 60s;
  add("b", other);
  const ProcessId first = add("c");
  add_second(9s);
  world_->at(1s, [&] {
    world_->kill(first_head);
    world_->kill(first);
    head.gate.incarnation = 12;
    head.gate.predecessors = {11};
    head.gate.called = {{"c", "c.2"}};
    head.start = 6s;
    add("a", head);
  });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(lines_["b"], ElementsAre("+a", "+c", "-c", "+a", "+c.2"));
  EXPECT_GT(at_c_.back(), 200);
}

}  // namespace
}  // namespace troupe::runtime
