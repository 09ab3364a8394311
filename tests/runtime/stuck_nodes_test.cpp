// When nothing moves on any of several nodes: one whose handler takes long is named and waited for,
// one whose handler hangs ends the run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/node/node.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/runtime/gates.h"
#include "tests/support/temporary_folder.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// On a busy machine a node that the thread sanitizer watches may not hear of another's end in less.
#if defined(__SANITIZE_THREAD__)
constexpr milliseconds kStuckAfter{1000};
constexpr const char* kSilence = "no progress on any node for 1.0 s";
#else
constexpr milliseconds kStuckAfter{200};
constexpr const char* kSilence = "no progress on any node for 0.2 s";
#endif

// Node a, the first, and node b with an actor that is busy in a handler; both in this process, on
// threads of their own.
class StuckNodes : public testing::Test {
 protected:
  // What a makes of b, whose actor is in its handler until `over` says so.
  NodeEnd run(const std::function<bool()>& over) {
    plan_.actors = {{"root.a", "", "", false, "a"},
                    {"root.b", "", "", false, "b"},
                    {"busy", "", "root.b", true, "b"}};
    plan_.links = {{"busy", "out", "root.a", "in", Lane::kData, 1, 1 << 20, 1}};
    Script left;
    left.receive = [](Context& context, const Message& message) {
      if (message.as<PeerLeft>() != nullptr) context.finish();
    };
    scripts_ = {{"root.a", left}, {"root.b", root_of(1)}, {"busy", busy_until(over)}};
    const std::string address = "ipc://" + folder_ / "a";
    auto other = std::thread([this, address] { (void)run_node("b", "", address); });
    const NodeEnd end = run_node("a", address, "");
    other.join();
    return end;
  }
  std::string log_lines() const {
    const std::scoped_lock lock(lines_mutex_);
    return lines_;
  }

 private:
  Script busy_until(const std::function<bool()>& over) {
    Script script;
    script.start = [over](Context& context) {
      while (!over()) std::this_thread::sleep_for(milliseconds(1));
      context.finish();
    };
    return script;
  }
  NodeEnd run_node(const std::string& name, const std::string& listen, const std::string& first) {
    LogOptions log_options;
    log_options.to_stderr = false;
    log_options.also = [this](LogLevel, std::string_view line) {
      const std::scoped_lock lock(lines_mutex_);
      lines_ += std::string(line) + "\n";
    };
    Log log = Log::open(log_options).value();
    ZmqWireOptions wire_options;
    wire_options.clock = &clock_;
    wire_options.listen = listen;
    const auto wire = ZmqWire::open(wire_options).value();
    GateOptions gate;
    gate.node = name;
    gate.head_address = first;
    gate.heartbeat = milliseconds(10);
    NodeOptions options;
    options.stuck_after = kStuckAfter;
    const ActorFactory make = [this](const ActorPlan& plan) {
      return std::make_unique<ScriptedActor>(scripts_.at(plan.name));
    };
    Node node(plan_, make, options, clock_, log, Uplink{gate, *wire, number_types()});
    return node.run();
  }

  const TemporaryFolder folder_;  // of the socket
  SteadyClock clock_;
  Plan plan_;
  std::map<std::string, Script> scripts_;
  mutable std::mutex lines_mutex_;
  std::string lines_;
};

TEST_F(StuckNodes, HandlerThatTakesItsTimeIsNamedAndTheRunGoesOn) {
  const NodeEnd end = run([this] {
    const std::string lines = log_lines();
    if (lines.find("stuck:") != std::string::npos) return true;
    return lines.find(kSilence) != std::string::npos &&
           lines.find("culprit: busy, whose handler has been running") != std::string::npos;
  });
  EXPECT_FALSE(end.error.has_value()) << end.error->message;
  EXPECT_THAT(log_lines(), Not(HasSubstr("stuck:")));
}

TEST_F(StuckNodes, HandlerThatHangsEndsTheRun) {
  const NodeEnd end = run([this] { return log_lines().find("stuck:") != std::string::npos; });
  ASSERT_TRUE(end.error.has_value());
  EXPECT_THAT(end.error->message,
              AllOf(HasSubstr("stuck: nothing has moved on any node"), HasSubstr("8 times"),
                    HasSubstr("cluster.failure.stuck_after"),
                    HasSubstr("culprit: busy, whose handler has been running")));
}

// A machine may have hundreds of nodes that wait for each other.
TEST(StuckNode, IsLookedAtRarelyWhileOthersMayStillMoveIt) {
  const TemporaryFolder folder;
  const SteadyClock clock;
  Log log = Log::silent();
  ZmqWireOptions wire_options;
  wire_options.clock = &clock;
  wire_options.listen = "ipc://" + folder / "a";
  const auto wire = ZmqWire::open(wire_options).value();
  GateOptions gate;
  gate.node = "a";
  Plan plan;
  plan.actors = {{"root.a", "", "", false, "a"}, {"root.b", "", "", false, "b"}};
  const NodeOptions options;
  const ActorFactory make = [](const ActorPlan&) {
    return std::make_unique<ScriptedActor>(Script());
  };
  Node node(plan, make, options, clock, log, Uplink{gate, *wire, number_types()});
  node.begin();
  const TimePoint now = clock.now();
  EXPECT_GE(node.next_due(), now + options.stuck_after / 100);
  EXPECT_LE(node.next_due(), clock.now() + options.stuck_after);
  (void)node.end();
}

}  // namespace
}  // namespace troupe::runtime
