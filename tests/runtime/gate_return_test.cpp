// Another process takes the place of the plan's first node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessId;
using sim::ProcessSetup;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint64_t kFirst = 11, kSecond = 13;

// Node "a" is the first one; "b" sends it a number now and then.
class GateReturn : public Gates {
 protected:
  void lay_out(std::int64_t numbers, Duration pause = 10ms) {
    Script listener;
    listener.receive = [this](Context&, Message message) {
      heard_.push_back(message.as<Number>()->value);
    };
    Script sender;
    sender.start = [pause](Context& context) { context.after(pause); };
    sender.timer = [numbers, pause, next = std::int64_t{0}](Context& context, TimerId) mutable {
      if (next == numbers) return context.finish();
      if (context.can_send(context.out("out"), 64)) context.send("out", Message::of(Number{next}));
      ++next;
      context.after(pause);
    };
    sender.undeliverable = [this](Context&, const Message& message, const Error&) {
      returned_.push_back(message.as<Number>()->value);
    };
    Script root_a;
    root_a.receive = [this](Context& context, const Message& message) {
      if (const auto* joined = message.as<PeerJoined>()) note("a", "joined " + joined->node);
      if (const auto* left = message.as<PeerLeft>()) {
        note("a", "left " + left->node);
        context.finish();
      }
    };
    Script root_b;
    root_b.receive = [this](Context& context, const Message& message) {
      if (const auto* joined = message.as<PeerJoined>()) note("b", "joined " + joined->node);
      if (const auto* away = message.as<PeerAway>()) note("b", "away " + away->node);
      if (const auto* lost = message.as<PeerLost>()) {
        note("b", (lost->fell_silent ? "lost silent " : "lost ") + lost->node);
        context.fail(lost->error);
      }
    };
    root_b.child_ended = [](Context& context, const ChildEnd&) {
      context.finish();
      return ChildDecision::kIgnore;
    };
    actor("a", "root.a", root_a);
    actor("a", "listener", listener);
    actor("b", "root.b", root_b);
    actor("b", "sender", sender);
    link("sender", "listener", 4);
  }
  void note(const char* node, const std::string& what) { notes_[node].push_back(what); }

  ProcessId add_first(std::uint64_t incarnation, std::vector<std::uint64_t> predecessors,
                      TimePoint start = TimePoint{0}) {
    ProcessSetup setup;
    setup.gate.incarnation = incarnation;
    setup.gate.predecessors = std::move(predecessors);
    setup.address = "sim://0";
    setup.start = start;
    return add("a", setup);
  }
  ProcessId add_other(Duration returns_within) {
    ProcessSetup setup;
    setup.gate.head_returns_within = returns_within;
    return add("b", setup);
  }
  // The first process of "a" dies then, and another one starts later.
  void replace(TimePoint dies, TimePoint starts, std::vector<std::uint64_t> predecessors) {
    world_->at(dies, [this, starts, predecessors] {
      world_->kill(0);
      add_first(kSecond, predecessors, starts);
    });
  }

  std::vector<std::int64_t> heard_, returned_;
  std::map<std::string, std::vector<std::string>> notes_;
};

// Every number is heard or comes back, and the link has its credit again.
TEST_F(GateReturn, NodesGoOnWithTheProcessThatTakesItsPlace) {
  for (const Duration pause : {Duration{30ms}, Duration{4s}}) {
    heard_.clear();
    returned_.clear();
    notes_.clear();
    plan_ = {};
    make_world(7);
    lay_out(800);
    add_first(kFirst, {});
    const ProcessId other = add_other(60s);
    replace(1s, 1s + pause, {kFirst});
    ASSERT_TRUE(world_->run(60s));
    EXPECT_EQ(error_of(other), "");
    EXPECT_THAT(notes_["b"], ElementsAre("joined a", "away a", "joined a"));
    EXPECT_THAT(notes_["a"], ElementsAre("joined b", "joined b", "left b"));
    EXPECT_EQ(heard_.back(), 799);
    EXPECT_TRUE(std::is_sorted(heard_.begin(), heard_.end()));
    EXPECT_EQ(std::adjacent_find(heard_.begin(), heard_.end()), heard_.end()) << "none twice";
    EXPECT_EQ(stats_of(other, "sender").in_use_messages, 0);
    if (pause > 2s) {
      EXPECT_THAT(returned_, SizeIs(testing::Gt(100U))) << "what was said to nobody came back";
    }
  }
}

TEST_F(GateReturn, WhoDoesNotKnowItsPredecessorIsRefused) {
  lay_out(800);
  add_first(kFirst, {});
  const ProcessId other = add_other(60s);
  replace(1s, 1100ms, {kFirst + 1});
  world_->run(20s);
  EXPECT_THAT(error_of(other), HasSubstr("a is a new process and knows nothing of what b did"));
  EXPECT_THAT(notes_["b"], ElementsAre("joined a", "lost a"));
}

TEST_F(GateReturn, AProcessThatDoesNotComeInTimeIsLost) {
  lay_out(100000);
  add_first(kFirst, {});
  const ProcessId other = add_other(5s);
  world_->at(1s, [this] { world_->kill(0); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(error_of(other), HasSubstr("and no other process took its place within 5 s"));
  EXPECT_THAT(notes_["b"], ElementsAre("joined a", "away a", "lost silent a"));
  EXPECT_LT(world_->clock().now(), TimePoint{10s});
}

TEST_F(GateReturn, WithoutPatienceItIsLostAtOnce) {
  lay_out(100000);
  add_first(kFirst, {});
  const ProcessId other = add_other(0s);
  world_->at(1s, [this] { world_->kill(0); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(error_of(other), HasSubstr("no new connection came within 2.0 s"));
  EXPECT_THAT(notes_["b"], ElementsAre("joined a", "lost silent a"));
}

// Its own word was believed: others may have taken its place meanwhile.
TEST_F(GateReturn, OneThatWakesAfterItWasGivenUpStaysLost) {
  lay_out(100000);
  add_first(kFirst, {});
  const ProcessId other = add_other(60s);
  world_->at(1s, [this] { world_->pause(0, 8s); });
  world_->run(30s);
  EXPECT_THAT(error_of(other), HasSubstr("a is lost: it is back after it was given up"));
  EXPECT_THAT(notes_["b"], ElementsAre("joined a", "away a", "lost a"));
}

// "a" waits for its first node for so long that it is not even looked after, and what it says is
// held up later on. It has not slept, and the trouble is that node's.
TEST_F(GateReturn, OneThatWaitedIdlyHasNotStoodStill) {
  for (const bool sleeps : {false, true}) {
    plan_ = {};
    make_world(7);
    lay_out(100000);
    int given_up = 0;
    ProcessSetup setup;
    setup.gate.incarnation = kFirst;
    setup.keeper->given_up = [&](const std::string&) { ++given_up; };
    add("a", setup);
    ProcessSetup late;
    late.gate.head_returns_within = 60s;
    late.start = 20s;
    add("b", late);
    world_->at(21s, [this, sleeps] {
      if (sleeps) world_->pause(0, 23500ms);
      if (!sleeps) world_->network().block(0, 1, 23500ms);
    });
    world_->run(26s);
    EXPECT_EQ(given_up > 0, sleeps);
  }
}

// While it is away a node may end: nobody has to hear of it.
TEST_F(GateReturn, ANodeMayEndWhileItIsAway) {
  lay_out(400);
  add_first(kFirst, {});
  const ProcessId other = add_other(60s);
  world_->at(1s, [this] { world_->kill(0); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(error_of(other), "");
  EXPECT_LT(world_->clock().now(), TimePoint{8s});
}

// Wherever in their introduction the connection breaks.
TEST_F(GateReturn, TroublesWhileTheyMeetCostNothing) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    heard_.clear();
    notes_.clear();
    plan_ = {};
    make_world(seed);
    lay_out(300);
    add_first(kFirst, {});
    const ProcessId other = add_other(60s);
    replace(1s, 1020ms, {kFirst});
    for (int i = 0; i < 4; ++i) {
      world_->at(world_->dice().between(1020ms, 1300ms), [this] {
        for (const sim::ConnectionId connection : world_->network().connections()) {
          world_->network().drop(connection);
        }
      });
    }
    ASSERT_TRUE(world_->run(60s)) << "seed " << seed;
    ASSERT_EQ(error_of(other), "") << "seed " << seed;
    ASSERT_EQ(heard_.back(), 299) << "seed " << seed;
    ASSERT_TRUE(std::is_sorted(heard_.begin(), heard_.end())) << "seed " << seed;
    ASSERT_EQ(notes_["b"], (std::vector<std::string>{"joined a", "away a", "joined a"}))
        << "seed " << seed;
  }
}

// Node "a" sends numbers to "b", which keeps the newest two of the link's four, and lets go of all
// when another process has come. Each process counts from its own hundred thousand.
class LinkFromFirst : public GateReturn {
 protected:
  void lay_out_from_first(bool receiver_ends) {
    Script root_a, sender, root_b, receiver;
    sender.start = [](Context& context) { context.after(5ms); };
    sender.timer = [this](Context& context, TimerId) {
      const std::int64_t first = 100000 * heads_;
      if (next_ < first) next_ = first;
      while (next_ < first + 300 && context.send("out", Message::of(Number{next_}))) ++next_;
      context.after(5ms);
    };
    sender.undeliverable = [this](Context&, const Message& message, const Error&) {
      returned_.push_back(message.as<Number>()->value);
    };
    root_b.receive = [this](Context& context, const Message& message) {
      if (message.as<PeerAway>() != nullptr) note("b", "away");
      if (message.as<PeerJoined>() == nullptr) return;
      note("b", "joined");
      context.send_control("receiver", Message::of(Number{-1}));
      context.after(8s);
    };
    root_b.timer = [this, first = true](Context& context, TimerId) mutable {
      if (std::exchange(first, false)) return;
      kept_.clear();
      context.finish();
    };
    root_b.child_ended = [](Context&, const ChildEnd&) { return ChildDecision::kIgnore; };
    receiver.receive = [this, receiver_ends](Context& context, Message message) {
      const std::int64_t number = message.as<Number>()->value;
      if (number < 0) {
        kept_.clear();
        return;
      }
      heard_.push_back(number);
      kept_.push_back(std::move(message));
      if (kept_.size() > 2) kept_.pop_front();
      if (receiver_ends && heard_.size() == 100) {
        kept_.clear();
        context.finish();
      }
    };
    root_a.receive = [](Context& context, const Message& message) {
      if (message.as<PeerLeft>() != nullptr) context.finish();
    };
    actor("a", "root.a", root_a);
    actor("a", "sender", sender);
    actor("b", "root.b", root_b);
    actor("b", "receiver", receiver);
    link("sender", "receiver", 4);
  }
  void play(std::uint64_t seed, bool receiver_ends) {
    heard_.clear();
    returned_.clear();
    notes_.clear();
    kept_.clear();
    plan_ = {};
    heads_ = 1;
    next_ = 0;
    make_world(seed);
    lay_out_from_first(receiver_ends);
    add_first(kFirst, {});
    const ProcessId other = add_other(60s);
    const TimePoint dies = world_->dice().between(60ms, 1s);
    world_->at(dies, [this, dies] {
      world_->kill(0);
      ++heads_;
      add_first(kSecond, {kFirst}, dies + world_->dice().between(1ms, 3s));
    });
    ASSERT_TRUE(world_->run(60s)) << "seed " << seed;
    ASSERT_EQ(error_of(other), "") << "seed " << seed;
    ASSERT_EQ(notes_["b"], (std::vector<std::string>{"joined", "away", "joined"})) << seed;
  }

  std::int64_t heads_ = 1, next_ = 0;
  std::deque<Message> kept_;
};

// What is held of the one before is not given back to the next, which has all its credit.
TEST_F(LinkFromFirst, BeginsAnewWithTheProcessThatTakesItsPlace) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ASSERT_NO_FATAL_FAILURE(play(seed, false));
    const auto second = std::find(heard_.begin(), heard_.end(), 200000);
    ASSERT_NE(second, heard_.end()) << "seed " << seed;
    EXPECT_EQ(heard_.end() - second, 300) << "seed " << seed;
    EXPECT_TRUE(std::is_sorted(heard_.begin(), heard_.end())) << "seed " << seed;
    EXPECT_THAT(returned_, SizeIs(0)) << "seed " << seed;
  }
}

// Messages of the one before do not come back to the next, which never sent them.
TEST_F(LinkFromFirst, NothingOfTheOneBeforeComesBackToTheNext) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ASSERT_NO_FATAL_FAILURE(play(seed, true));
    const auto of_second = [](std::int64_t number) { return number >= 200000; };
    EXPECT_EQ(
        std::ranges::count_if(heard_, of_second) + std::ranges::count_if(returned_, of_second), 300)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::runtime
