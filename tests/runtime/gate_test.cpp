#include "runtime/transport/gate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/stage.h"
#include "tests/sim/world.h"

namespace troupe::runtime {
void pack(WireWriter& out, const Number& body) { out.integer(body.value); }
void unpack(WireReader& in, Number& body) { body.value = in.integer(); }
namespace {

using namespace std::chrono_literals;
using sim::ProcessSetup;
using sim::World;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const WireTypes& number_types() {
  static const WireTypes kTypes = [] {
    WireTypes types;
    types.add<Number>();
    return types;
  }();
  return kTypes;
}

// Calls back for every packet that is sent.
class Tap final : public sim::NetworkWatcher {
 public:
  explicit Tap(std::function<void(const sim::Passage&, const AnyPacket&)> sent)
      : sent_(std::move(sent)) {}
  void sent(const sim::Passage& passage) override {
    const auto read = unpack(*passage.packet, number_types());
    ASSERT_TRUE(read.ok()) << read.error().message;
    sent_(passage, *read);
  }

 private:
  std::function<void(const sim::Passage&, const AnyPacket&)> sent_;
};

// Nodes "a", "b", ... with scripted actors, over simulated wires. Every node's root is told what
// happens to peers, notes it, and ends with an error when one is lost.
class Gates : public ::testing::Test {
 protected:
  struct Told {
    TimePoint when;
    std::string what;  // "joined a", "left a", "lost a: why"
  };

  Gates() { make_world(1); }
  void make_world(std::uint64_t seed) {
    world_ = std::make_unique<World>(
        seed, number_types(), sim::NetworkOptions{},
        [this](std::string_view line) { trace_ += std::string(line) + "\n"; });
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(trace_.c_str(), stderr);
  }

  // The first actor of a node is its root.
  void actor(const std::string& node, const std::string& name, Script script) {
    std::string owner;
    for (const ActorPlan& other : plan_.actors) {
      if (other.node == node && other.owner.empty()) owner = other.name;
    }
    plan_.actors.push_back({name, "scripted", owner, false, node});
    scripts_[name] = std::move(script);
  }
  void link(const std::string& from, const std::string& to, std::int64_t credits,
            Lane lane = Lane::kData) {
    plan_.links.push_back({from, "out", to, "in", lane, credits, 1 << 20, 1});
  }

  // A root that ends when `children` of its children and `peers` other nodes have ended.
  Script root(const std::string& node, int children, int peers = 0) {
    Script script;
    auto left = std::make_shared<int>(children + peers);
    const auto count = [left](Context& context) {
      if (--*left == 0) context.finish();
    };
    script.child_ended = [count](Context& context, const ChildEnd& end) {
      if (end.error) return ChildDecision::kEscalate;
      count(context);
      return ChildDecision::kIgnore;
    };
    script.receive = [this, node, peers, count](Context& context, Message message) {
      std::vector<Told>& told = told_[node];
      if (const auto* joined = message.as<PeerJoined>()) {
        told.push_back({context.now(), "joined " + joined->node});
      } else if (const auto* left_peer = message.as<PeerLeft>()) {
        told.push_back({context.now(), "left " + left_peer->node});
        if (peers > 0) count(context);
      } else if (const auto* lost = message.as<PeerLost>()) {
        told.push_back({context.now(), "lost " + lost->node + ": " + lost->error.message});
        context.fail(lost->error);
      }
    };
    return script;
  }

  // Of a process that runs the plan's node.
  sim::ProcessId add(const std::string& node, ProcessSetup setup = {}) {
    setup.factory = [this](const ActorPlan& plan) {
      return std::make_unique<ScriptedActor>(scripts_.at(plan.name));
    };
    return world_->add(plan_, node, std::move(setup));
  }
  std::string told(const std::string& node) const {
    std::string all;
    const auto found = told_.find(node);
    if (found == told_.end()) return all;
    for (const Told& told : found->second) all += told.what + "\n";
    return all;
  }
  std::string error_of(sim::ProcessId process) const {
    const auto& end = world_->end(process);
    if (!end) return "not ended";
    return end->error ? end->error->message : "";
  }
  LinkStats stats_of(sim::ProcessId process, const std::string& from) {
    for (const LinkStats& stats : world_->node(process).link_stats()) {
      if (stats.plan.from == from) return stats;
    }
    return {};
  }

  std::string trace_;
  Plan plan_;
  std::map<std::string, Script> scripts_;
  std::map<std::string, std::vector<Told>> told_;
  std::unique_ptr<World> world_;
};

// Notes the numbers it is sent, and ends after `count` of them.
Script noting_receiver(std::vector<std::int64_t>& numbers, std::size_t count) {
  Script script;
  script.receive = [&numbers, count](Context& context, Message message) {
    numbers.push_back(message.as<Number>()->value);
    if (numbers.size() == count) context.finish();
  };
  return script;
}

TEST_F(Gates, MessagesCrossInOrderAndBothNodesEnd) {
  std::vector<std::int64_t> numbers;
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", counting_sender(100));
  actor("b", "root.b", root("b", 1));
  actor("b", "receiver", noting_receiver(numbers, 100));
  link("sender", "receiver", 4);
  add("a");
  add("b");
  ASSERT_TRUE(world_->run(60s));
  ASSERT_THAT(numbers, SizeIs(100));
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(numbers[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(error_of(0) + error_of(1), "");
  EXPECT_EQ(stats_of(0, "sender").in_use_messages, 0);
  EXPECT_EQ(told("a").substr(0, 9), "joined b\n");
}

TEST_F(Gates, SenderStopsAtItsCreditsUntilTheReceiverGivesThemBack) {
  std::vector<Message> kept;
  std::size_t most = 0, received = 0;
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    kept.push_back(std::move(message));
    most = std::max(most, kept.size());
    if (kept.size() == 3) (void)context.after(1s);
    if (++received == 12) context.finish();
  };
  receiver.timer = [&](Context&, TimerId) {
    // Nothing more has come in all this time.
    EXPECT_EQ(kept.size(), 3U);
    kept.clear();
  };
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", counting_sender(12));
  actor("b", "root.b", root("b", 1));
  actor("b", "receiver", receiver);
  link("sender", "receiver", 3);
  add("a");
  add("b");
  ASSERT_TRUE(world_->run(60s)) << "received " << received;
  EXPECT_EQ(received, 12U);
  EXPECT_EQ(most, 3U);
  EXPECT_EQ(error_of(0) + error_of(1), "");
  kept.clear();
}

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
    EXPECT_FALSE(context.can_send("out", message.bytes()));
    message = Message();
    EXPECT_TRUE(context.can_send("out", 0));
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
  EXPECT_THAT(error_of(0), AllOf(HasSubstr("stuck: nothing but timers has moved on any node"),
                                 HasSubstr("better times")));
}

// Introductions that are refused: a message of its own on either side, and an end.

TEST_F(Gates, NodesOfDifferentTopologiesRefuseEachOther) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 1));
  ProcessSetup one, other;
  one.gate.terms = {{"topology", "1234"}};
  other.gate.terms = {{"topology", "5678"}};
  add("a", one);
  add("b", other);
  world_->at(5s, [&] { world_->node(0).request_stop(); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(error_of(1), "root.b: a refused: another topology: a has 1234, b has 5678");
  EXPECT_THAT(world_->log_lines(0),
              HasSubstr("b at from sim://1 was refused: another topology: a has 1234, b has 5678"));
  EXPECT_EQ(error_of(0), "");
}

TEST_F(Gates, TokenThatIsNotAdmittedIsRefused) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 1));
  const auto setup = [](const std::string& token) {
    ProcessSetup made;
    made.gate.token = token;
    made.gate.admit = [](const std::string&, const std::string& shown) -> Result<void> {
      if (shown == "sesame") return {};
      return Error{ErrorKind::kUsage, "the token has expired"};
    };
    return made;
  };
  add("a", setup(""));
  add("b", setup("abracadabra"));
  world_->at(5s, [&] { world_->node(0).request_stop(); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(error_of(1), "root.b: a refused: the token has expired");
  EXPECT_THAT(world_->log_lines(0), HasSubstr("b at from sim://1 was refused: the token"));
}

TEST_F(Gates, TokenIsAskedOfGuestsOnly) {
  std::vector<std::int64_t> numbers;
  actor("a", "root.a", root("a", 1));
  actor("a", "sender", counting_sender(1));
  actor("b", "root.b", root("b", 1));
  actor("b", "receiver", noting_receiver(numbers, 1));
  link("sender", "receiver", 1);
  ProcessSetup guest;
  guest.gate.admit = [](const std::string&, const std::string&) -> Result<void> {
    return Error{ErrorKind::kUsage, "nobody is let in here"};
  };
  add("a");
  add("b", guest);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(numbers, ElementsAre(0));
  EXPECT_EQ(error_of(0) + error_of(1), "");
}

TEST_F(Gates, SecondProcessOfANameIsRefused) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 0, 1));
  add("a");
  add("b");
  ProcessSetup late;
  late.start = 1s;
  late.gate.addresses = {{"a", "sim://0"}};
  add("b", late);
  world_->at(5s, [&] { world_->node(0).request_stop(); });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(error_of(2), "root.b: a refused: b is taken by process 1001 on sim");
  EXPECT_EQ(error_of(0), "");
  EXPECT_THAT(told("a"), HasSubstr("joined b"));
}

TEST_F(Gates, AnotherNodeAtTheAddressIsRecognised) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 1));
  actor("c", "root.c", root("c", 1));
  actor("c", "sender", counting_sender(9));
  actor("b", "receiver", {});
  link("sender", "receiver", 1);
  add("a");
  add("b");
  ProcessSetup lost;
  lost.gate.addresses = {{"a", "sim://1"}, {"b", "sim://1"}};
  add("c", lost);
  world_->at(5s, [&] {
    world_->node(0).request_stop();
    world_->node(1).request_stop();
  });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(error_of(2), HasSubstr("b answers at sim://1, where a was expected"));
}

// A process that speaks as it likes.
class Stranger final : public WireEvents {
 public:
  explicit Stranger(World& world) : world_(world), wire_(world.network().add("sim://stranger")) {}
  // Dials and says that; what comes back is read at `when`.
  void say(const std::string& address, const Packet& packet, TimePoint when) {
    packet_ = packet;
    (void)wire_.dial(address);
    for (TimePoint at = 0s; at <= when; at += 10ms) {
      world_.at(at, [this] { wire_.poll(*this, TimePoint(0)); });
    }
  }
  void connected(ConnectionId connection, const ConnectionInfo&) override {
    wire_.send(connection, Lane::kControl, packet_);
  }
  void arrived(ConnectionId, Lane, Packet packet) override {
    auto read = unpack(packet, number_types());
    if (const auto* refusal = std::get_if<Refusal>(&*read)) heard_ = refusal->error.message;
  }
  void disconnected(ConnectionId, const std::string&) override { over_ = true; }
  const std::string& heard() const { return heard_; }
  bool over() const { return over_; }

 private:
  World& world_;
  sim::SimWire& wire_;
  Packet packet_;
  std::string heard_;
  bool over_ = false;
};

TEST_F(Gates, StrangersAreAnsweredWithWhatIsWrongAndCutOff) {
  struct Case {
    Packet packet;
    std::string answer;  // to it, also in the log
    std::string log;
  };
  Hello hello;
  hello.node = "b";
  hello.incarnation = 5;
  std::vector<Case> cases;
  Hello other = hello;
  other.version = 99;
  cases.push_back({pack(other), "protocol version 1 here, 99 there", "protocol version 1 here"});
  other = hello;
  other.node = "nobody";
  cases.push_back({pack(other), "a waits for no node of the name 'nobody'", "waits for no node"});
  other = hello;
  other.peer_incarnation = 17;
  cases.push_back(
      {pack(other), "a is a new process and knows nothing of what b did", "a is a new"});
  other = hello;
  other.received = {1, 0, 0};
  cases.push_back({pack(other), "b has more than was sent", "b has more than was sent"});
  cases.push_back({pack(Enrolment{}), "a takes in no new nodes", "takes in no new nodes"});
  cases.push_back({pack(Heartbeat{}), "", "did not introduce itself: cut off"});
  cases.push_back({{Buffer::zeroed(3), {}}, "", "sent what cannot be read"});
  for (const Case& example : cases) {
    SCOPED_TRACE(example.log);
    plan_ = {};
    make_world(1);
    actor("a", "root.a", root("a", 1));
    actor("b", "root.b", root("b", 1));
    add("a");
    Stranger stranger(*world_);
    stranger.say("sim://0", example.packet, 1s);
    world_->at(2s, [&] { world_->node(0).request_stop(); });
    EXPECT_TRUE(world_->run(60s));
    EXPECT_TRUE(stranger.over());
    EXPECT_THAT(stranger.heard(), HasSubstr(example.answer));
    EXPECT_EQ(example.answer.empty(), stranger.heard().empty());
    EXPECT_THAT(world_->log_lines(0), HasSubstr(example.log));
    EXPECT_EQ(error_of(0), "");
    world_.reset();
  }
}

}  // namespace
}  // namespace troupe::runtime
