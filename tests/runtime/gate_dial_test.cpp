// What a node makes of a wire that is slow to dial, or ends a dial for good.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "runtime/node/node.h"
#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;

// Asks `dialing` during a dial, and then ends it with `why`.
class RefusingWire final : public Wire {
 public:
  RefusingWire(Error why, std::function<void()> dialing)
      : why_(std::move(why)), dialing_(std::move(dialing)) {}
  std::string address() const override { return ""; }
  Result<ConnectionId> dial(const std::string&) override {
    dialing_();
    dialed_ = true;
    return ConnectionId{1};
  }
  void send(ConnectionId, Lane, Packet) override {}
  void close(ConnectionId) override {}
  void poll(WireEvents& events, TimePoint) override {
    if (std::exchange(dialed_, false)) events.disconnected({1}, why_);
    std::this_thread::yield();
  }
  void wake() override {}

 private:
  const Error why_;
  const std::function<void()> dialing_;
  bool dialed_ = false;
};

// Ends with the error of the peer that is lost.
class Root final : public Actor {
 public:
  void receive(Context& context, Message message) override {
    if (const auto* lost = message.as<PeerLost>()) context.fail(lost->error);
  }
};

// For node b, which dials a.
NodeEnd end_of(RefusingWire& wire, std::unique_ptr<Node>& node) {
  Plan plan;
  plan.actors = {{"root.a", "root", "", false, "a"}, {"root.b", "root", "", false, "b"}};
  static const SteadyClock clock;
  Log log = Log::silent();
  GateOptions gate;
  gate.node = "b";
  gate.head_address = "somewhere";
  const ActorFactory make = [](const ActorPlan&) { return std::make_unique<Root>(); };
  node = std::make_unique<Node>(plan, make, NodeOptions{}, clock, log,
                                Uplink{gate, wire, number_types()});
  const NodeEnd end = node->run();
  node.reset();
  return end;
}

TEST(GateDial, WhileANameIsLookedUpOthersMayAskWhatTheyLike) {
  std::unique_ptr<Node> node;
  bool answered = false;
  RefusingWire wire({ErrorKind::kLostPeers, "enough"}, [&] {
    auto asked = std::async(std::launch::async, [&] {
      (void)node->peer_stats();
      (void)node->wait_for_graph();
      return node->link_stats().size();
    });
    // The only bound: a lock that the dial holds is never given up by waiting.
    answered = asked.wait_for(20s) == std::future_status::ready;
    if (!answered) std::abort();
  });
  const NodeEnd end = end_of(wire, node);
  EXPECT_TRUE(answered);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->message, "root.b: no connection to a at somewhere: enough");
  EXPECT_EQ(end.error->kind, ErrorKind::kLostPeers);
}

TEST(GateDial, ThatEndsCannotBeMeantToWorkTogetherIsAnErrorOfUsage) {
  std::unique_ptr<Node> node;
  RefusingWire wire({ErrorKind::kUsage, "it speaks version 77"}, [] {});
  const NodeEnd end = end_of(wire, node);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->kind, ErrorKind::kUsage);
  EXPECT_EQ(end.error->message, "root.b: no connection to a at somewhere: it speaks version 77");
}

}  // namespace
}  // namespace troupe::runtime
