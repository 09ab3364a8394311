// How nodes get to know each other, and whom they refuse: with a message of its own on either side,
// and an end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessSetup;
using sim::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
              HasSubstr("b at sim://1 was refused: another topology: a has 1234, b has 5678"));
  EXPECT_EQ(error_of(0), "");
}

TEST_F(Gates, SecondProcessOfANameIsRefused) {
  actor("a", "root.a", root("a", 1));
  actor("b", "root.b", root("b", 0, 1));
  add("a");
  add("b");
  ProcessSetup late;
  late.start = 1s;
  late.gate.head_address = "sim://0";
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
  lost.gate.head_address = "sim://1";
  add("c", lost);
  world_->at(5s, [&] {
    world_->node(0).request_stop();
    world_->node(1).request_stop();
  });
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(error_of(2), HasSubstr("a refused: b has not been told of c yet"));
}

// A process that speaks as it likes.
class UnknownPeer final : public WireEvents {
 public:
  explicit UnknownPeer(World& world) : world_(world), wire_(world.network().add("sim://unknown")) {}
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
  void disconnected(ConnectionId, const Error&) override { over_ = true; }
  const std::string& heard() const { return heard_; }
  bool over() const { return over_; }

 private:
  World& world_;
  sim::SimWire& wire_;
  Packet packet_;
  std::string heard_;
  bool over_ = false;
};

TEST_F(Gates, UnknownPeersAreAnsweredWithWhatIsWrongAndCutOff) {
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
  other.node = "nobody";
  cases.push_back({pack(other), "a waits for no node of the name 'nobody'", "waits for no node"});
  other = hello;
  other.peer_incarnation = 17;
  cases.push_back(
      {pack(other), "a is a new process and knows nothing of what b did", "a is a new"});
  other = hello;
  other.received = {1, 0, 0};
  cases.push_back({pack(other), "b has more than was sent", "b has more than was sent"});
  cases.push_back({pack(Enrolment{}), "the run takes in no new nodes", "takes in no new nodes"});
  cases.push_back({pack(Heartbeat{}), "", "did not introduce itself: cut off"});
  cases.push_back({{Buffer::zeroed(3), {}}, "", "sent what cannot be read"});
  for (const Case& example : cases) {
    SCOPED_TRACE(example.log);
    plan_ = {};
    make_world(1);
    actor("a", "root.a", root("a", 1));
    actor("b", "root.b", root("b", 1));
    add("a");
    UnknownPeer unknown(*world_);
    unknown.say("sim://0", example.packet, 1s);
    world_->at(2s, [&] { world_->node(0).request_stop(); });
    EXPECT_TRUE(world_->run(60s));
    EXPECT_TRUE(unknown.over());
    EXPECT_THAT(unknown.heard(), HasSubstr(example.answer));
    EXPECT_EQ(example.answer.empty(), unknown.heard().empty());
    EXPECT_THAT(world_->log_lines(0), HasSubstr(example.log));
    EXPECT_EQ(error_of(0), "");
    world_.reset();
  }
}

// All who have a token have the same key: with one that has expired only those may come who are
// known, or who were invited while it was good.
TEST_F(Gates, ExpiredKeysAdmitNobodyNew) {
  Hello hello;
  hello.node = "b";
  hello.incarnation = 5;
  struct Case {
    std::vector<Packet> before;  // said by others whose keys are good
    Packet packet;
    bool refused;
  };
  const Packet enrolment = pack(Enrolment{});
  const Case cases[] = {{{}, pack(hello), true},
                        {{}, enrolment, true},
                        {{pack(hello)}, enrolment, true},
                        {{enrolment}, pack(hello), false},
                        {{pack(hello)}, pack(hello), false}};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    plan_ = {};
    make_world(1);
    actor("a", "root.a", root("a", 1));
    actor("b", "root.b", root("b", 1));
    ProcessSetup host;
    host.keeper->answer = [](const std::vector<std::string>& awaited) {
      return EnrolmentAnswer(Invitation{awaited.empty() ? "none" : awaited.front(), {}});
    };
    add("a", host);
    std::vector<std::unique_ptr<UnknownPeer>> unknown_peers;
    for (const Packet& packet : cases[i].before) {
      unknown_peers.push_back(std::make_unique<UnknownPeer>(*world_));
      unknown_peers.back()->say("sim://0", packet, 1s);
    }
    UnknownPeer late(*world_);
    world_->network().expire_key(1 + unknown_peers.size());
    world_->at(1s, [&] { late.say("sim://0", cases[i].packet, 2s); });
    world_->at(3s, [&] {
      if (!world_->end(0)) world_->node(0).request_stop();
    });
    EXPECT_TRUE(world_->run(60s));
    if (cases[i].refused) {
      EXPECT_THAT(late.heard(), HasSubstr("the token has expired"));
    } else {
      EXPECT_EQ(late.heard(), "");
    }
    world_.reset();
  }
}

}  // namespace
}  // namespace troupe::runtime
