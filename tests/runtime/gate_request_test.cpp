// Processes that are no nodes ask something of a head: who decides, who is answered, and when.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/transport/head_request.h"
#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A process that asks, and hangs up when it is told to.
class Asker final : public WireEvents {
 public:
  Asker(sim::World& world, std::string node)
      : world_(world), wire_(world.network().add("sim://asker")) {
    request_.name = std::move(node);
    request_.host = "here";
    request_.pid = 7;
  }
  void ask(const std::string& address, TimePoint from, TimePoint to) {
    world_.at(from, [this, address] { connection_ = *wire_.dial(address); });
    for (TimePoint at = from; at <= to; at += 10ms) {
      world_.at(at, [this] { wire_.poll(*this, TimePoint(0)); });
    }
  }
  void hang_up(TimePoint when) {
    world_.at(when, [this] { wire_.close(connection_); });
  }
  void connected(ConnectionId connection, const ConnectionInfo&) override {
    wire_.send(connection, Lane::kControl, pack(request_));
  }
  void arrived(ConnectionId, Lane, Packet packet) override {
    const auto read = unpack(packet, number_types());
    if (const auto* refusal = std::get_if<Refusal>(&*read)) heard = refusal->error.message;
    if (const auto* granted = std::get_if<Granted>(&*read)) heard = granted->text;
    heard_at = world_.clock().now();
  }
  void disconnected(ConnectionId, const Error&) override { over = true; }

  HeadRequest request_;
  std::string heard;
  TimePoint heard_at{0};
  bool over = false;

 private:
  sim::World& world_;
  sim::SimWire& wire_;
  ConnectionId connection_;
};

class GateRequest : public Gates {
 protected:
  // A head whose root keeps what is asked of it, and a node that waits for nothing.
  void make_nodes() {
    Script head = root("a", 1);
    const auto rest = head.receive;
    head.receive = [this, rest](Context& context, Message message) {
      const auto* asked = message.as<RequestAsked>();
      if (asked == nullptr) return rest(context, std::move(message));
      asked_.push_back(asked->request.name + " for " + asked->by);
      replies_.push_back(asked->reply);
    };
    actor("a", "root.a", head);
    actor("b", "root.b", root("b", 0, 1));
    add("a");
    add("b");
  }
  void stop_at(TimePoint when) {
    world_->at(when, [this] { world_->node(0).request_stop(); });
  }

  std::vector<std::string> asked_;
  std::vector<std::shared_ptr<RequestReply>> replies_;
};

TEST_F(GateRequest, WhoAsksIsAnsweredWhenTheRootHasDecided) {
  make_nodes();
  Asker first(*world_, "b"), second(*world_, "c");
  first.ask("sim://0", 1s, 20s);
  second.ask("sim://0", 2s, 20s);
  world_->at(10s, [this] { replies_.at(0)->answer(std::string("b has left")); });
  world_->at(11s, [this] { replies_.at(1)->answer(Error{ErrorKind::kUsage, "no such node"}); });
  stop_at(20s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(first.heard, "b has left");
  EXPECT_GE(first.heard_at, TimePoint(10s));
  EXPECT_LT(first.heard_at, TimePoint(11s)) << "it was not told at once";
  EXPECT_EQ(second.heard, "no such node");
  EXPECT_THAT(asked_, ElementsAre(HasSubstr("b for process 7 of here at"), HasSubstr("c for")));
  EXPECT_THAT(world_->log_lines(0), HasSubstr("was refused: no such node"));
  EXPECT_EQ(error_of(0), "");
}

TEST_F(GateRequest, WhoHangsUpIsForgottenAndTheAnswerHarmsNobody) {
  make_nodes();
  Asker asker(*world_, "b");
  asker.ask("sim://0", 1s, 20s);
  asker.hang_up(3s);
  world_->at(10s, [this] { replies_.at(0)->answer(std::string("b has left")); });
  stop_at(20s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(asker.heard, "");
  EXPECT_EQ(error_of(0), "");
}

TEST_F(GateRequest, WhoStillWaitsWhenTheRunEndsIsTold) {
  make_nodes();
  Asker undecided(*world_, "b"), dropped(*world_, "b");
  dropped.ask("sim://0", 1s, 30s);
  undecided.ask("sim://0", 2s, 30s);
  world_->at(10s, [this] { replies_.erase(replies_.begin()); });
  stop_at(20s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_EQ(dropped.heard, "the run has ended, and its members with it");
  EXPECT_LT(dropped.heard_at, TimePoint(11s));
  // The world ends with its nodes, before that answer can come.
  EXPECT_THAT(world_->log_lines(0), HasSubstr("was refused: the run has ended\n"));
  // An answer that comes later goes nowhere.
  world_.reset();
  replies_.clear();
}

TEST_F(GateRequest, ExpiredKeysAndNodesThatAreNoHeadAreRefused) {
  make_nodes();
  Asker expired(*world_, "b"), lost(*world_, "b");
  world_->network().expire_key(2);
  expired.ask("sim://0", 1s, 5s);
  lost.ask("sim://1", 1s, 5s);
  stop_at(6s);
  ASSERT_TRUE(world_->run(60s));
  EXPECT_THAT(expired.heard, HasSubstr("the token has expired"));
  EXPECT_THAT(lost.heard, HasSubstr("b is not the head of the run; ask a for that"));
  EXPECT_THAT(asked_, ElementsAre());
}

}  // namespace
}  // namespace troupe::runtime
