#include "runtime/node/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessSetup;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(Gates, MessagesOfANodeThatEndsBeforeItsPeerIsThereStillArrive) {
  std::vector<std::int64_t> numbers;
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", counting_sender(2));
  actor("b", "root.b", root("b", 1));
  actor("b", "receiver", noting_receiver(numbers, 2));
  link("sender", "receiver", 2);
  add("a");
  ProcessSetup late;
  late.start = 1s;
  add("b", late);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(numbers, ElementsAre(0, 1));
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

TEST_F(Gates, MessageToAnEndedActorElsewhereComesBackWithItsCauseAndCredit) {
  std::string cause;
  Script sender;
  sender.start = [](Context& context) { (void)context.after(500ms); };
  sender.timer = [](Context& context, TimerId) {
    EXPECT_TRUE(context.send("out", Message::of(Number{7})));
  };
  sender.undeliverable = [&](Context& context, Message message, const Error& error) {
    EXPECT_EQ(message.as<Number>()->value, 7);
    EXPECT_FALSE(context.can_send(context.out("out"), message.bytes()));
    message = Message();
    EXPECT_TRUE(context.can_send(context.out("out"), 0));
    cause = error.message;
    context.finish();
  };
  Script receiver;
  receiver.start = [](Context& context) { context.finish(); };
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", sender);
  actor("b", "root.b", root("b", 1, 1));
  actor("b", "receiver", receiver);
  link("sender", "receiver", 1);
  add("a");
  add("b");
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(cause, "receiver has ended");
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

TEST_F(Gates, MessageThatCameBackDoesNotComeBackAgainWhenItsReceiverDies) {
  // Whether the acknowledgement, in another lane, is still on its way when it does.
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    int back = 0;
    plan_ = {};
    make_world(seed);
    Script sender;
    sender.start = [](Context& context) { (void)context.after(500ms); };
    sender.timer = [](Context& context, TimerId) {
      EXPECT_TRUE(context.send("out", Message::of(Number{7})));
    };
    sender.undeliverable = [&](Context&, Message, const Error&) {
      ++back;
      world_->at(world_->clock().now(), [&] { world_->kill(1); });
    };
    Script receiver;
    receiver.start = [](Context& context) { context.finish(); };
    actor("a", "root.a", root("a", 2));
    actor("a", "sender", sender);
    actor("b", "root.b", root("b", 2));
    actor("b", "receiver", receiver);
    link("sender", "receiver", 1);
    add("a");
    add("b");
    EXPECT_TRUE(world_->run(60s));
    EXPECT_EQ(back, 1);
    EXPECT_EQ(stats_of(0, "sender").in_use_messages, 0);
    world_.reset();
  }
}

TEST_F(Gates, ControlReachesActorsElsewhereAlsoFromOutside) {
  std::vector<std::string> senders;
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    EXPECT_EQ(message.port(), "control");
    senders.emplace_back(message.sender_name());
    if (senders.size() == 2) context.finish();
  };
  Script sender;
  sender.start = [](Context& context) {
    context.send_control("receiver", Message::of(Number{1}));
    context.finish();
  };
  actor("a", "root.a", root("a", 1, 1));
  actor("a", "sender", sender);
  actor("b", "root.b", root("b", 1));
  actor("b", "receiver", receiver);
  add("a");
  add("b");
  world_->at(1s, [&] { world_->node(0).send_control("receiver", Message::of(Number{2})); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(senders, ElementsAre("sender", "outside"));
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

TEST_F(Gates, KilledNodeIsLostInTimeAndWhatItHeldComesBack) {
  std::vector<std::int64_t> back;
  Script sender = counting_sender(100);
  sender.undeliverable = [&](Context&, Message message, const Error& error) {
    EXPECT_THAT(error.message, HasSubstr("b is lost"));
    back.push_back(message.as<Number>()->value);
  };
  sender.stop = [](Context& context) { (void)context.after(100ms); };
  sender.timer = [](Context& context, TimerId) { context.finish(); };
  std::vector<Message> kept;
  Script receiver;
  receiver.receive = [&](Context&, Message message) { kept.push_back(std::move(message)); };
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", sender);
  actor("b", "root.b", root("b", 1));
  actor("b", "receiver", receiver);
  link("sender", "receiver", 4);
  add("a");
  add("b");
  // One more is on its way when b dies.
  world_->at(1s, [&] { kept.pop_back(); });
  world_->at(1s + 1us, [&] {
    kept.clear();
    world_->kill(1);
  });
  ASSERT_TRUE(world_->run(60s));
  ASSERT_THAT(told_["a"], SizeIs(2));
  EXPECT_THAT(told_["a"][1].what, HasSubstr("lost b: b is lost: its connection closed"));
  EXPECT_LT(told_["a"][1].when, 1s + 2s + 500ms);
  EXPECT_EQ(stats_of(0, "sender").in_use_messages, 0);
  EXPECT_THAT(error_of(0), HasSubstr("b is lost"));
}

TEST_F(Gates, SilentPeerIsLostAfterDeadAfter) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 1));
  add("a");
  add("b");
  world_->at(1s, [&] {
    world_->network().block(0, 1, 100s);
    world_->network().block(1, 0, 100s);
  });
  ASSERT_TRUE(world_->run(200s));
  for (const std::string node : {"a", "b"}) {
    ASSERT_THAT(told_[node], SizeIs(2)) << node;
    EXPECT_THAT(told_[node][1].what, HasSubstr("has not been heard of for 2.0 s"));
    EXPECT_LT(told_[node][1].when, 1s + 2s + 1s);
  }
}

// Nothing is heard either way for `silence`; whether both nodes are still there long after.
struct Silence {
  const char* what;
  std::string machine_of_a, machine_of_b;
  double load_of_a = 0.0, load_of_b = 0.0;
  Duration longest_gap{0};  // some time before
  Duration tolerated{0};
};

TEST_F(Gates, PatienceWithSilenceGrowsWithWhatIsKnownOfThePeer) {
  const std::vector<Silence> cases{
      {"nothing speaks for more", "x", "y", 1.5, 0.5, 0s, 1500ms},
      {"nobody knows its machine", "", "", 0.0, 0.0, 0s, 1500ms},
      {"it runs on this machine", "x", "x", 0.0, 0.0, 0s, 18s},
      {"its host is busy, as it has said", "x", "y", 0.0, 6.0, 0s, 8s},
      {"this host is busy", "x", "y", 6.0, 0.0, 0s, 8s},
      {"it was slow before", "x", "y", 0.0, 0.0, 1400ms, 3500ms},
  };
  for (const Silence& example : cases) {
    for (const bool is_too_long : {false, true}) {
      SCOPED_TRACE(std::string(example.what) + (is_too_long ? ", too long" : ""));
      plan_ = {};
      told_.clear();
      make_world(1);
      actor("a", "root.a", root("a", 1));
      actor("b", "root.b", root("b", 1));
      sim::ProcessSetup setup;
      setup.gate.machine = example.machine_of_a;
      setup.gate.host_load = [&] { return example.load_of_a; };
      add("a", setup);
      setup.gate.machine = example.machine_of_b;
      setup.gate.host_load = [&] { return example.load_of_b; };
      add("b", setup);
      const auto fall_silent = [&](Duration time) {
        const TimePoint until = world_->clock().now() + time;
        world_->network().block(0, 1, until);
        world_->network().block(1, 0, until);
      };
      if (example.longest_gap > 0s) world_->at(2s, [&] { fall_silent(example.longest_gap); });
      const Duration silence = is_too_long ? 2 * example.tolerated : example.tolerated;
      world_->at(5s, [&] { fall_silent(silence); });
      const bool has_ended = world_->run(60s);
      EXPECT_EQ(has_ended, is_too_long) << told("a") << told("b");
      world_.reset();
    }
  }
}

// A closed connection is no silence: the kernel closes those of a process that dies.
TEST_F(Gates, PeerThatDiesIsLostAfterDeadAfterHoweverPatientTheOtherIsWithSilence) {
  for (const std::string machine : {"x", "y"}) {
    SCOPED_TRACE(machine);
    plan_ = {};
    told_.clear();
    make_world(1);
    actor("a", "root.a", root("a", 1));
    actor("b", "root.b", root("b", 1));
    sim::ProcessSetup setup;
    setup.gate.machine = "x";
    add("a", setup);
    setup.gate.machine = machine;
    add("b", setup);
    world_->at(1s, [&] { world_->network().block(1, 0, 2500ms); });
    world_->at(5s, [&] { world_->kill(1); });
    ASSERT_TRUE(world_->run(60s));
    ASSERT_THAT(told_["a"], SizeIs(2));
    EXPECT_LT(told_["a"][1].when, 5s + 2s + 500ms);
    world_.reset();
  }
}

TEST_F(Gates, MomentInWhichManyThreadsWakeUpIsNoLoad) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 1));
  int samples = 0;
  sim::ProcessSetup setup;
  setup.gate.host_load = [&] { return samples++ % 8 == 4 ? 6.0 : 0.5; };
  add("a", setup);
  add("b");
  world_->at(10s, [&] { world_->kill(1); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_GT(samples, 8);
  ASSERT_THAT(told_["a"], SizeIs(2));
  EXPECT_LT(told_["a"][1].when, 10s + 2s + 500ms);
}

TEST_F(Gates, NodeThatEndsDoesNotWaitForAPeerThatIsGoneHoweverBusyItsHostIs) {
  Script ends;
  ends.start = [](Context& context) { (void)context.after(4s); };
  ends.timer = [](Context& context, TimerId) { context.finish(); };
  actor("a", "root.a", ends);
  actor("b", "root.b", root("b", 1));
  sim::ProcessSetup busy;
  busy.gate.host_load = [] { return 6.0; };
  add("a", busy);
  add("b");
  world_->at(1s, [&] { world_->kill(1); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_LT(world_->clock().now(), 4s + 500ms);
}

// While it is connected it may have something to say.
TEST_F(Gates, PeerThatOthersGoOnWithoutIsLostAsSoonAsItsConnectionCloses) {
  for (const Duration dies : {500ms, 3000ms}) {
    SCOPED_TRACE(seconds(dies));
    make_world(1);
    told_.clear();
    plan_ = {};
    Script root_a = root("a", 1);
    root_a.start = [](Context& context) { (void)context.after(1s); };
    root_a.timer = [](Context& context, TimerId) { context.go_on_without("b"); };
    actor("a", "root.a", root_a);
    actor("b", "root.b", root("b", 1));
    add("a");
    add("b");
    world_->at(dies, [&] { world_->kill(1); });
    ASSERT_TRUE(world_->run(60s));
    ASSERT_THAT(told_["a"], SizeIs(2));
    EXPECT_THAT(told_["a"][1].what, HasSubstr("lost b: b is lost: its connection closed"));
    EXPECT_GE(told_["a"][1].when, std::max<Duration>(dies, 1s));
    EXPECT_LT(told_["a"][1].when, std::max<Duration>(dies, 1s) + 100ms);
    world_.reset();
  }
}

TEST_F(Gates, PeerThatOthersGoOnWithoutMaySayGoodbye) {
  Script root_a = root("a", 1), root_b = root("b", 1);
  root_a.start = [](Context& context) { (void)context.after(1s); };
  root_a.timer = [](Context& context, TimerId) { context.go_on_without("b"); };
  root_b.start = [](Context& context) { (void)context.after(2s); };
  root_b.timer = [](Context& context, TimerId) { context.finish(); };
  actor("a", "root.a", root_a);
  actor("b", "root.b", root_b);
  add("a");
  add("b");
  world_->at(3s, [&] { world_->node(0).request_stop(); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(told("a"), "joined b\nleft b\n");
}

// Shortly after each would have given up the other, whose connection was gone before they slept.
TEST_F(Gates, NodesThatSleepUntilAPeerIsOverdueLoseNobody) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 1));
  add("a");
  add("b");
  world_->at(1s, [&] {
    world_->network().block(0, 1, 3250ms);
    world_->network().block(1, 0, 3250ms);
    for (const sim::ConnectionId each : world_->network().connections()) {
      world_->network().drop(each);
    }
  });
  world_->at(1200ms, [&] {
    for (const sim::ProcessId each : {0, 1}) world_->pause(each, 3300ms);
  });
  EXPECT_FALSE(world_->run(20s)) << "nobody has ended";
  for (const std::string node : {"a", "b"}) EXPECT_THAT(told_[node], SizeIs(1)) << node;
}

// Its signs of life wait behind a packet that takes three times as long as it may be silent.
TEST_F(Gates, PeerWhosePacketIsOnItsWayIsNotSilent) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 1));
  add("a");
  add("b");
  world_->at(1s, [&] { world_->network().trickle(0, 1, 7s); });
  EXPECT_FALSE(world_->run(20s)) << "nobody has ended";
  for (const std::string node : {"a", "b"}) EXPECT_THAT(told_[node], SizeIs(1)) << node;
}

TEST_F(Gates, NodesThatWereAllAsleepLoseNobody) {
  std::vector<std::int64_t> numbers;
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", counting_sender(3));
  Script late = noting_receiver(numbers, 3);
  actor("b", "root.b", root("b", 1));
  actor("b", "receiver", late);
  link("sender", "receiver", 1);
  add("a");
  add("b");
  world_->at(1ms, [&] {
    for (const sim::ProcessId id : {0, 1}) world_->pause(id, 20s);
  });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2));
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

TEST_F(Gates, ConnectionThatBreaksDuringTheIntroductionIsMadeAgain) {
  for (const std::size_t broken : {0, 1}) {  // AnyPacket's Hello, Welcome
    SCOPED_TRACE(broken);
    std::vector<std::int64_t> numbers;
    plan_ = {};
    told_.clear();
    make_world(broken + 1);
    actor("a", "root.a", root("a", 1));
    actor("a", "sender", counting_sender(3));
    actor("b", "root.b", root("b", 1));
    actor("b", "receiver", noting_receiver(numbers, 3));
    link("sender", "receiver", 1);
    bool done = false;
    Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
      if (packet.index() == broken && !std::exchange(done, true)) {
        world_->network().drop(passage.connection);
      }
    });
    world_->network().watch(tap);
    add("a");
    add("b");
    EXPECT_TRUE(world_->run(60s));
    EXPECT_TRUE(done);
    EXPECT_THAT(numbers, ElementsAre(0, 1, 2));
    EXPECT_EQ(error_of(0) + error_of(1), "");
    world_.reset();
  }
}

TEST_F(Gates, CreditsWhoseAccountWasLostAreToldAgain) {
  std::vector<std::int64_t> numbers;
  actor("a", "root.a", root("a", 1));
  actor("a", "receiver", noting_receiver(numbers, 2));
  actor("b", "root.b", root("b", 1));
  actor("b", "sender", counting_sender(2));
  link("sender", "receiver", 1);
  bool done = false;
  Tap tap([&](const sim::Passage& passage, const AnyPacket& packet) {
    const auto* account = std::get_if<Account>(&packet);
    if (account != nullptr && !account->credits.empty() && !std::exchange(done, true)) {
      world_->network().drop(passage.connection);
    }
  });
  world_->network().watch(tap);
  add("a");
  add("b");
  EXPECT_TRUE(world_->run(30s));
  EXPECT_TRUE(done);
  EXPECT_THAT(numbers, ElementsAre(0, 1));
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

TEST_F(Gates, StuckRunNamesTheActorOnTheOtherNode) {
  Script deaf;
  std::vector<Message> kept;
  deaf.receive = [&](Context&, Message message) { kept.push_back(std::move(message)); };
  deaf.waiting_for = [] { return std::string("better times"); };
  deaf.stop = [&](Context& context) {
    kept.clear();
    context.finish();
  };
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", counting_sender(5));
  actor("b", "root.b", root("b", 0, 1));
  actor("b", "receiver", deaf);
  link("sender", "receiver", 2);
  add("a");
  add("b");
  ASSERT_TRUE(world_->run(200s));
  EXPECT_THAT(error_of(0),
              AllOf(HasSubstr("stuck: nothing has moved on any node"), HasSubstr("better times")));
}

}  // namespace
}  // namespace troupe::runtime
