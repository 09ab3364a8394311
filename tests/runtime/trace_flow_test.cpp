// The sending of a message and its handling are known by the same flow, and no two messages by one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using sim::ProcessId;
using sim::ProcessSetup;

// Each has a size of its own, by which both ends of its flow know it.
Message sized(std::int64_t number) {
  return Message::of(Number{number}, {Buffer::allocate(static_cast<std::size_t>(number))});
}

// Sizes by flow, of what was sent or what was handled. Fails when two messages have one flow.
using Ends = std::map<TraceFlow, std::int64_t>;

Ends ends_in(const std::vector<ActorTrace>& traces, bool sent) {
  Ends ends;
  for (const ActorTrace& actor : traces) {
    for (const TraceRecord& record : actor.trace.records) {
      if (record.sent != sent || !record.flow.known()) continue;
      EXPECT_TRUE(ends.emplace(record.flow, record.argument).second)
          << "two of " << actor.name << " have the flow " << record.flow.link << "/"
          << record.flow.number;
    }
  }
  return ends;
}

// How many of what was handled were sent, as far as both are known. Fails when a flow joins two.
std::size_t joined(const Ends& sent, const Ends& handled) {
  std::size_t count = 0;
  for (const auto& [flow, bytes] : handled) {
    const auto found = sent.find(flow);
    if (found == sent.end()) continue;
    EXPECT_EQ(found->second, bytes) << "of link " << flow.link << ", number " << flow.number;
    ++count;
  }
  return count;
}

Script ending_after(int messages) {
  Script script;
  script.receive = [left = messages](Context& context, Message) mutable {
    if (--left == 0) context.finish();
  };
  return script;
}

TEST(TraceFlow, JoinsWhatIsSentAlongLinksAndPastThem) {
  Script sender;
  sender.start = [](Context& context) {
    for (int i = 1; i <= 3; ++i) context.send("out", sized(i));
    for (int i = 4; i <= 5; ++i) context.send_control("receiver", sized(i));
    context.finish();
  };
  for (const bool own_thread : {false, true}) {
    Stage stage;
    stage.actor("root", "", root_of(2)).actor("sender", "root", sender, own_thread);
    stage.actor("receiver", "root", ending_after(5)).link("sender", "receiver", 8);
    ASSERT_FALSE(stage.run_on_threads().error.has_value());
    const auto traces = stage.node().traces();
    const Ends handled = ends_in(traces, false);
    EXPECT_EQ(handled.size(), 5u);
    EXPECT_EQ(joined(ends_in(traces, true), handled), 5u);
    for (const ActorTrace& actor : traces) {
      std::optional<TimePoint> latest;
      for (const TraceRecord& record : actor.trace.records) {
        if (record.sent) {
          EXPECT_GE(record.start, latest.value_or(record.start));
          latest = record.start;
        } else if (latest) {
          EXPECT_GE(record.end, *latest) << "sent within the handler";
        }
      }
    }
  }
}

// What an ended actor did not take is handled by nobody, and what its next life takes is its own.
TEST(TraceFlow, StaysRightWhenAnActorIsMadeAnew) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Script sender;
    sender.start = [](Context& context) { context.after(1ms); };
    sender.timer = [next = 1](Context& context, TimerId) mutable {
      for (int i = 0; i < 3; ++i) context.send("out", sized(next++));
      if (next < 60) {
        context.after(1ms);
      } else {
        context.finish();
      }
    };
    sender.undeliverable = [](Context&, Message, const Error&) {};
    Script receiver;
    receiver.receive = [](Context& context, Message message) {
      const auto number = message.as<Number>()->value;
      if (number % 7 == 0) context.fail({ErrorKind::kInternal, "on purpose"});
    };
    Script root;
    root.child_ended = [](Context& context, const ChildEnd& end) {
      if (end.error) return ChildDecision::kRestart;
      context.finish();
      return ChildDecision::kIgnore;
    };
    Stage stage;
    stage.actor("root", "", root).actor("sender", "root", sender);
    stage.actor("receiver", "root", receiver).link("sender", "receiver", 64);
    ASSERT_FALSE(stage.run_in_steps(seed).error.has_value());
    const auto traces = stage.node().traces();
    const Ends handled = ends_in(traces, false);
    EXPECT_GE(joined(ends_in(traces, true), handled), 10u) << "seed " << seed;
  }
}

TEST(TraceFlow, MessagesThatAreSentOnHaveAFlowForEachWay) {
  Script sender;
  sender.start = [](Context& context) {
    for (int i = 1; i <= 4; ++i) context.send("out", sized(i));
    context.finish();
  };
  Script relay;
  relay.receive = [left = 4](Context& context, Message message) mutable {
    context.send("out", std::move(message));
    if (--left == 0) context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(3)).actor("sender", "root", sender);
  stage.actor("relay", "root", relay).actor("receiver", "root", ending_after(4));
  stage.link("sender", "relay", 8).link("relay", "receiver", 8);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  const auto traces = stage.node().traces();
  EXPECT_EQ(joined(ends_in(traces, true), ends_in(traces, false)), 8u);
}

class TraceFlowBetweenNodes : public Gates {
 protected:
  // On "b": sends a number of its own size every 10 ms, to "listener" on "a".
  void lay_out(std::int64_t numbers) {
    Script listener;
    listener.receive = [](Context&, const Message&) {};
    Script sender;
    sender.start = [](Context& context) { context.after(10ms); };
    sender.timer = [numbers, next = std::int64_t{1}](Context& context, TimerId) mutable {
      if (next > numbers) return context.finish();
      if (context.can_send(context.out("out"), 2000)) context.send("out", sized(next));
      ++next;
      context.after(10ms);
    };
    sender.undeliverable = [this](Context&, const Message&, const Error&) { ++returned_; };
    Script root_a;
    root_a.receive = [](Context& context, const Message& message) {
      if (message.as<PeerLeft>() != nullptr) context.finish();
    };
    Script root_b;
    root_b.receive = [](Context& context, const Message& message) {
      if (const auto* lost = message.as<PeerLost>()) context.fail(lost->error);
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
  ProcessId add_first(std::uint64_t incarnation, std::vector<std::uint64_t> predecessors,
                      TimePoint start) {
    ProcessSetup setup;
    setup.gate.incarnation = incarnation;
    setup.gate.predecessors = std::move(predecessors);
    setup.address = "sim://0";
    setup.start = start;
    setup.node.trace_records = 4096;
    return add("a", setup);
  }

  int returned_ = 0;
};

TEST_F(TraceFlowBetweenNodes, JoinsBothEndsOverBrokenConnections) {
  lay_out(200);
  const ProcessId first = add_first(11, {}, TimePoint{0});
  const ProcessId other = add("b");
  for (int i = 1; i < 10; ++i) {
    world_->at(i * 200ms, [this] {
      for (const sim::ConnectionId connection : world_->network().connections()) {
        world_->network().drop(connection);
      }
    });
  }
  ASSERT_TRUE(world_->run(60s));
  ASSERT_EQ(error_of(other), "");
  const Ends sent = ends_in(world_->node(other).traces(), true);
  const Ends handled = ends_in(world_->node(first).traces(), false);
  const LinkStats stats = stats_of(other, "sender");
  EXPECT_EQ(handled.size(), static_cast<std::size_t>(stats.sent));
  EXPECT_EQ(joined(sent, handled), handled.size());
}

// What was sent to the process before has no flow any more: the next one counts from 1 as well.
TEST_F(TraceFlowBetweenNodes, BeginsAnewWithTheProcessThatTakesAPlace) {
  for (const Duration pause : {Duration{30ms}, Duration{4s}}) {
    returned_ = 0;
    plan_ = {};
    make_world(7);
    lay_out(800);
    add_first(11, {}, TimePoint{0});
    ProcessSetup setup;
    setup.gate.head_returns_within = 60s;
    setup.node.trace_records = 4096;
    const ProcessId other = add("b", setup);
    ProcessId second{};
    world_->at(1s, [&] {
      world_->kill(0);
      second = add_first(13, {11}, 1s + pause);
    });
    ASSERT_TRUE(world_->run(60s));
    ASSERT_EQ(error_of(other), "");
    const Ends sent = ends_in(world_->node(other).traces(), true);
    const Ends handled = ends_in(world_->node(second).traces(), false);
    EXPECT_GT(returned_, 0) << "some were said to nobody";
    EXPECT_GT(handled.size(), 100u);
    EXPECT_EQ(joined(sent, handled), handled.size());
    EXPECT_EQ(sent.size(), handled.size()) << "and nothing else is left of the first one";
  }
}

}  // namespace
}  // namespace troupe::runtime
