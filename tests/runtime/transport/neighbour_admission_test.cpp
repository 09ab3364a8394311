// A member lets in over encrypted sockets the neighbours that the head has told of, each with its
// own key and in its own name, and nobody else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "runtime/actor.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"
#include "runtime/transport/packets.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

using testing::HasSubstr;

// Stays until it is stopped.
class Resident final : public Actor {
 public:
  void receive(Context&, Message) override {}
};

// Nodes a (the first), b, c and d; c and d share links with b, and dial it.
Plan plan_of_four() {
  Plan plan;
  for (const char* node : {"a", "b", "c", "d"}) {
    plan.actors.push_back({std::string("root.") + node, "resident", "", false, node});
  }
  for (const char* from : {"root.c", "root.d"}) {
    plan.links.push_back({from, "out", "root.b", "in", Lane::kData, 1, 1000, 0});
  }
  return plan;
}

Hello hello_of(const std::string& node, std::uint64_t incarnation) {
  Hello hello;
  hello.node = node;
  hello.incarnation = incarnation;
  return hello;
}

// Node b is real, with keys and a listening wire; the others are played by the test.
class NeighbourAdmission : public testing::Test {
 protected:
  // Lets in those that the first node tells of.
  class Keeper final : public Gatekeeper {
   public:
    explicit Keeper(std::vector<AllowedKey>& allowed) : allowed_(allowed) {}
    void neighbours_are(const std::vector<DirectoryEntry>& neighbours) override {
      allowed_.clear();
      for (const DirectoryEntry& neighbour : neighbours)
        allowed_.push_back({neighbour.key, neighbour.node});
    }

   private:
    std::vector<AllowedKey>& allowed_;
  };

  NeighbourAdmission() {
    GateOptions gate;
    gate.node = "b";
    gate.head_address = head_.wire->address() + "#" + head_keys_.public_key;
    gate.keeper = std::make_shared<Keeper>(allowed_);
    node_ = std::make_unique<Node>(
        plan_of_four(), [](const ActorPlan&) { return std::make_unique<Resident>(); },
        NodeOptions{}, clock_, log_, Uplink{gate, *wire_, types_, false}, &scheduler_);
    node_->begin();
  }
  ~NeighbourAdmission() override {
    node_->request_stop();
    node_->end();
  }

  static ZmqWireOptions wire_options(const KeyPair& keys, const std::string& listen = "") {
    ZmqWireOptions options = plain(listen);
    options.keys = keys;
    return options;
  }
  // Until the condition holds; false: it did not within half a minute.
  bool play_node(std::initializer_list<StageEnd*> ends, const std::function<bool()>& condition) {
    const TimePoint deadline = stage_clock().now() + std::chrono::seconds(30);
    while (!condition()) {
      if (stage_clock().now() > deadline) return false;
      for (StageEnd* end : ends) {
        end->wire->poll(end->diary, stage_clock().now() + std::chrono::milliseconds(1));
      }
      node_->turn_gate(TimePoint{0});
      while (scheduler_.run_one()) {
      }
      node_->tend();
    }
    return true;
  }
  // b has met the first node, and heard from it of these.
  void tell(const std::vector<DirectoryEntry>& neighbours) {
    ASSERT_TRUE(play_node({&head_}, [&] { return !head_.diary.packets.empty(); }));
    at_head_ = head_.diary.packets[0].connection;
    Welcome welcome;
    static_cast<Introduction&>(welcome) = hello_of("a", 77);
    head_.wire->send(at_head_, Lane::kControl, pack(welcome));
    head_.wire->send(at_head_, Lane::kControl, pack(Directory{1, neighbours}));
    ASSERT_TRUE(play_node({&head_}, [&] {
      for (const ArrivedPacket& arrived : head_.diary.packets) {
        const auto read = unpack(arrived.packet, types_);
        if (read.ok() && std::holds_alternative<DirectoryHeard>(*read)) return true;
      }
      return false;
    }));
  }
  // The fate of a process with these keys that introduces itself so: "welcome", the words of a
  // refusal, or why there is no connection.
  std::string answer_to(const KeyPair& keys, const Hello& hello) {
    StageEnd caller(wire_options(keys));
    const ConnectionId id = caller.dial(wire_->address() + "#" + keys_.public_key);
    bool said = false;
    const auto over = [&] {
      if (!said && caller.diary.infos.contains(id)) {
        said = true;
        caller.wire->send(id, Lane::kControl, pack(hello));
      }
      return !caller.diary.packets.empty() || !caller.diary.ends.empty();
    };
    EXPECT_TRUE(play_node({&caller}, over));
    if (caller.diary.packets.empty()) return caller.diary.ends[id];
    const auto read = unpack(caller.diary.packets[0].packet, types_);
    if (!read.ok()) return read.error().message;
    if (std::holds_alternative<Welcome>(*read)) return "welcome";
    const auto* refusal = std::get_if<Refusal>(&*read);
    return refusal == nullptr ? "something else" : refusal->error.message;
  }

  const KeyPair head_keys_ = *make_keys(), keys_ = *make_keys();
  const KeyPair keys_of_c_ = *make_keys(), keys_of_d_ = *make_keys();
  const std::vector<DirectoryEntry> both_ = {{"c", "", keys_of_c_.public_key, 30, false},
                                             {"d", "", keys_of_d_.public_key, 40, false}};
  StageEnd head_{[this] {
    ZmqWireOptions options = wire_options(head_keys_, fresh_ipc_address());
    options.allowed = {{keys_.public_key, "b"}};
    return options;
  }()};
  ConnectionId at_head_;
  std::vector<AllowedKey> allowed_;
  std::unique_ptr<ZmqWire> wire_ = [this] {
    ZmqWireOptions options = wire_options(keys_, fresh_ipc_address());
    options.allowed_now = [this] { return allowed_; };
    return std::move(ZmqWire::open(options)).value();
  }();
  const WireTypes types_;
  ManualClock clock_;  // stands still: nobody is given up
  Log log_ = Log::silent();
  StepScheduler scheduler_{1, clock_};
  std::unique_ptr<Node> node_;
};

TEST_F(NeighbourAdmission, NeighboursAreLetInWithTheirOwnKeysAndNames) {
  ASSERT_NO_FATAL_FAILURE(tell(both_));
  EXPECT_EQ(answer_to(keys_of_c_, hello_of("c", 30)), "welcome");
  EXPECT_EQ(answer_to(keys_of_d_, hello_of("d", 40)), "welcome");
}

TEST_F(NeighbourAdmission, AnUnknownKeyIsRefusedBeforeItSaysAWord) {
  ASSERT_NO_FATAL_FAILURE(tell(both_));
  const KeyPair unknown = *make_keys();
  const std::string why = answer_to(unknown, hello_of("c", 30));
  EXPECT_THAT(why, HasSubstr("does not know this node's key"));
  EXPECT_THAT(why, HasSubstr(unknown.public_key));
}

TEST_F(NeighbourAdmission, ANeighbourThatHasNotBeenToldOfIsUnknown) {
  ASSERT_NO_FATAL_FAILURE(tell({both_[0]}));
  EXPECT_THAT(answer_to(keys_of_d_, hello_of("d", 40)), HasSubstr("does not know this node's key"));
}

// The first node is dialed and not let in.
TEST_F(NeighbourAdmission, TheKeyOfTheFirstNodeOpensNothing) {
  ASSERT_NO_FATAL_FAILURE(tell(both_));
  EXPECT_THAT(answer_to(head_keys_, hello_of("a", 77)), HasSubstr("does not know this node's key"));
}

TEST_F(NeighbourAdmission, ANeighbourThatTakesAnothersNameIsRefused) {
  ASSERT_NO_FATAL_FAILURE(tell(both_));
  // All but the key is right.
  EXPECT_EQ(answer_to(keys_of_d_, hello_of("c", 30)), "c is another process than a has told of");
  EXPECT_EQ(answer_to(keys_of_c_, hello_of("d", 40)), "d is another process than a has told of");
  // Nobody's place was taken.
  EXPECT_EQ(answer_to(keys_of_c_, hello_of("c", 30)), "welcome");
}

TEST_F(NeighbourAdmission, AnotherProcessWithTheKeyOfANeighbourIsRefused) {
  ASSERT_NO_FATAL_FAILURE(tell(both_));
  EXPECT_EQ(answer_to(keys_of_c_, hello_of("c", 31)), "c is another process than a has told of");
}

TEST_F(NeighbourAdmission, ANeighbourThatHasEndedIsLetInNoMore) {
  ASSERT_NO_FATAL_FAILURE(tell(both_));
  const DirectoryEntry ended{"c", "", "", 0, false, true};
  head_.wire->send(at_head_, Lane::kControl, pack(Directory{2, {ended, both_[1]}}));
  ASSERT_TRUE(play_node({&head_}, [&] { return allowed_.size() == 1; }));
  EXPECT_THAT(answer_to(keys_of_c_, hello_of("c", 30)), HasSubstr("does not know this node's key"));
  EXPECT_EQ(answer_to(keys_of_d_, hello_of("d", 40)), "welcome");
}

}  // namespace
}  // namespace troupe::runtime
