// Order between lanes, timers, and messages nobody can take.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Lanes, ControlOvertakesDataAndDataOvertakesMetrics) {
  Script sender;
  sender.start = [](Context& context) {
    for (int i = 0; i < 3; ++i) context.send("metrics", Message::of(Number{200 + i}));
    for (int i = 0; i < 3; ++i) context.send("data", Message::of(Number{100 + i}));
    for (int i = 0; i < 3; ++i) context.send_control("receiver", Message::of(Number{i}));
    context.finish();
  };
  std::vector<std::int64_t> seen;
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    seen.push_back(message.as<Number>()->value);
    EXPECT_EQ(message.port(), seen.back() < 100 ? "control" : "in");
    // Comes while data and metrics wait.
    if (seen.back() == 100) context.send_control("receiver", Message::of(Number{3}));
    if (seen.size() == 10) context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("receiver", "root", receiver);
  stage.link("sender", "receiver", 9, Lane::kMetrics, "metrics");
  stage.link("sender", "receiver", 9, Lane::kData, "data");
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 100, 3, 101, 102, 200, 201, 202));
}

TEST(Lanes, ReceivedMessageSentOnAsControlReturnsItsCredit) {
  std::vector<Message> kept;
  Script relay;
  relay.receive = [](Context& context, Message message) {
    context.send_control("receiver", std::move(message));
    context.finish();
  };
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    EXPECT_EQ(message.sender_name(), "relay");
    EXPECT_EQ(message.port(), "control");
    EXPECT_FALSE(message.holds_credit());
    kept.push_back(std::move(message));
    context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(3)).actor("sender", "root", counting_sender(1));
  stage.actor("relay", "root", relay).actor("receiver", "root", receiver);
  stage.link("sender", "relay", 1);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_EQ(stage.link_stats("sender").in_use_messages, 0);
  kept.clear();
}

TEST(Lanes, LongHandlerSeesThatStopWaits) {
  std::atomic<bool> began{false};
  std::atomic<bool> was_waiting{false};
  Script worker;
  worker.receive = [&](Context& context, Message) {
    EXPECT_FALSE(context.stopping());
    began = true;
    while (!context.stopping()) context.post_progress();
    was_waiting = true;
  };
  Script root;
  root.start = [](Context& context) { context.send("out", Message::of(Number{1})); };
  root.receive = [&](Context& context, Message) { context.stop_child("worker"); };
  root.child_ended = [](Context& context, const ChildEnd&) {
    context.finish();
    return ChildDecision::kIgnore;
  };
  Script watcher;
  watcher.start = [&](Context& context) {
    while (!began) {
    }
    context.send_control("root", Message::of(Number{0}));
    context.finish();
  };
  Stage stage;
  stage.actor("root", "", root).actor("worker", "root", worker, true);
  stage.actor("supervised", "root", Script{}).actor("watcher", "supervised", watcher, true);
  stage.link("root", "worker", 1);
  ASSERT_FALSE(stage.run_on_threads().error.has_value());
  EXPECT_TRUE(was_waiting);
}

TEST(Timers, FireInOrderAtTheirTimesAndNotWhenCancelled) {
  std::vector<std::string> seen;
  TimerId first, second, cancelled;
  Script script;
  script.start = [&](Context& context) {
    second = context.after(seconds(5));
    first = context.after(seconds(2));
    cancelled = context.after(seconds(1));
    context.cancel(cancelled);
    context.cancel(cancelled);
    context.cancel(TimerId{});
  };
  script.timer = [&](Context& context, TimerId id) {
    EXPECT_NE(id, cancelled);
    seen.push_back((id == first ? "first at " : "second at ") +
                   std::to_string(context.now() / seconds(1)));
    if (id == second) context.finish();
  };
  Stage stage;
  stage.actor("root", "", script);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_FALSE(end.error.has_value()) << end.error->message;
  EXPECT_THAT(seen, ElementsAre("first at 2", "second at 5"));
}

TEST(Timers, CancelledWhileOnItsWayIsNotDelivered) {
  int fired = 0;
  TimerId other;
  Script script;
  script.start = [&](Context& context) {
    context.after(seconds(1));
    other = context.after(seconds(1));
    context.after(seconds(2));
  };
  script.timer = [&](Context& context, TimerId) {
    context.cancel(other);
    if (++fired == 2) context.finish();
  };
  Stage stage;
  stage.actor("root", "", script);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_EQ(stage.clock().now(), seconds(2)) << "the second to fire was the last one set";
}

TEST(Timers, WakeAnActorOnThreads) {
  int left = 5;
  Script script;
  script.start = [](Context& context) { context.after(milliseconds(1)); };
  script.timer = [&](Context& context, TimerId) {
    --left == 0 ? context.finish() : (void)context.after(milliseconds(1));
  };
  Stage stage;
  stage.actor("root", "", script);
  ASSERT_FALSE(stage.run_on_threads().error.has_value());
  EXPECT_EQ(left, 0);
}

TEST(Undeliverable, DataToAnEndedActorComesBackWithCauseAndCredit) {
  Script receiver;
  receiver.receive = [](Context& context, Message message) {
    if (message.as<Number>()->value == 1) context.finish();
  };
  std::vector<std::int64_t> back;
  std::string why;
  Script sender;
  sender.start = [](Context& context) {
    for (int i = 0; i < 5; ++i) context.send("out", Message::of(Number{i}));
  };
  sender.undeliverable = [&](Context& context, Message message, const Error& cause) {
    EXPECT_TRUE(message.holds_credit());
    back.push_back(message.as<Number>()->value);
    why = cause.message;
    if (back.size() == 3) context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 5);
  const NodeEnd end = stage.run_in_steps(2);
  ASSERT_FALSE(end.error.has_value()) << end.error->message;
  EXPECT_THAT(back, ElementsAre(2, 3, 4));
  EXPECT_EQ(why, "receiver has ended");
  EXPECT_EQ(stage.link_stats("sender").undelivered, 3);
  EXPECT_EQ(stage.link_stats("sender").in_use_messages, 0);
}

TEST(Undeliverable, ReturnedMessageCanBeSentAgain) {
  int tries = 0;
  Script sender;
  sender.start = [](Context& context) { context.send("out", Message::of(Number{1})); };
  sender.undeliverable = [&](Context& context, Message message, const Error&) {
    if (++tries == 3) {
      context.finish();
    } else {
      EXPECT_TRUE(context.send("out", message));
    }
  };
  Script receiver;
  receiver.start = [](Context& context) { context.finish(); };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 1);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_EQ(tries, 3);
}

TEST(Undeliverable, ControlToAnUnknownActorComesBackNamingIt) {
  std::string why;
  Script script;
  script.start = [](Context& context) { context.send_control("nobody", Message::of(Number{7})); };
  script.undeliverable = [&](Context& context, Message message, const Error& cause) {
    EXPECT_EQ(message.as<Number>()->value, 7);
    why = cause.message;
    context.finish();
  };
  Stage stage;
  stage.actor("root", "", script);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_EQ(why, "there is no actor nobody");
}

TEST(Undeliverable, MetricsToAnEndedActorAreCountedAsDropped) {
  Script monitor;
  monitor.start = [](Context& context) { context.finish(); };
  Script sender;
  sender.start = [](Context& context) { context.after(seconds(1)); };
  sender.timer = [](Context& context, TimerId) {
    for (int i = 0; i < 4; ++i) context.send("out", Message::of(Number{i}));
    context.finish();
  };
  sender.undeliverable = [](Context&, Message, const Error&) { ADD_FAILURE(); };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("monitor", "root", monitor).link("sender", "monitor", 2, Lane::kMetrics);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_EQ(stage.link_stats("sender").dropped, 4);
  EXPECT_EQ(stage.link_stats("sender").in_use_messages, 0);
}

TEST(Undeliverable, WarningIsTheDefault) {
  Script script;
  script.start = [](Context& context) {
    context.send_control("nobody", Message::of(Number{7}));
    context.after(seconds(1));
  };
  script.timer = [](Context& context, TimerId) { context.finish(); };
  Stage stage;
  stage.actor("root", "", script);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_THAT(stage.log_lines(), HasSubstr("root: 'number' came back: there is no actor nobody"));
}

TEST(Outside, ControlFromOutsideArrivesAndUnknownSendersAreLogged) {
  Script script;
  script.receive = [](Context& context, Message message) {
    EXPECT_EQ(message.sender(), kOutside);
    context.finish();
  };
  Stage stage;
  stage.actor("root", "", script);
  Node& node = stage.make_in_steps(1);
  node.begin();
  node.send_control("nobody", Message::of(Number{1}));
  node.send_control("root", Message::of(Number{1}));
  while (!node.tend()) stage.scheduler().wait(node.next_due());
  EXPECT_FALSE(node.end().error.has_value());
  EXPECT_THAT(stage.log_lines(), HasSubstr("'number' from outside was not delivered"));
}

}  // namespace
}  // namespace troupe::runtime
