// When nothing moves: deadlocks end the run and name the circle, slow handlers are only named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// Sends without end and keeps all it gets until it can send: two of them facing each other lock up.
Script greedy() {
  auto kept = std::make_shared<std::vector<Message>>();
  Script script;
  script.start = [](Context& context) {
    while (context.send("out", Message::of(Number{1}))) {
    }
  };
  script.receive = [kept](Context&, Message message) { kept->push_back(std::move(message)); };
  script.stop = [kept](Context& context) {
    kept->clear();
    context.finish();
  };
  return script;
}

void face_each_other(Stage& stage) {
  stage.actor("root", "", Script{}).actor("left", "root", greedy());
  stage.actor("right", "root", greedy()).link("left", "right", 2).link("right", "left", 3);
}

void expect_circle(const NodeEnd& end) {
  ASSERT_TRUE(end.error.has_value());
  EXPECT_EQ(end.error->kind, ErrorKind::kInternal);
  EXPECT_THAT(end.error->message, HasSubstr("nothing can move any more"));
  EXPECT_THAT(end.error->message, HasSubstr("culprit: a circle, left -> right -> left"));
  EXPECT_THAT(end.error->message, HasSubstr("left: no credit on out -> right.in (2 of 2 messages"));
  EXPECT_THAT(end.error->message, HasSubstr("keeps 3 of 3 messages of right"));
}

TEST(Stuck, DeadlockEndsTheRunAndNamesTheCircleInSteps) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Stage stage;
    face_each_other(stage);
    expect_circle(stage.run_in_steps(seed));
    EXPECT_EQ(stage.clock().now(), seconds(0)) << "without waiting";
  }
}

TEST(Stuck, DeadlockEndsTheRunAndNamesTheCircleOnThreads) {
  Stage stage;
  face_each_other(stage);
  expect_circle(stage.run_on_threads());
  EXPECT_THAT(stage.log_lines(), HasSubstr("stuck: nothing can move any more; everyone is asked"));
  EXPECT_THAT(stage.log_lines(), Not(HasSubstr("culprit"))) << "whoever reads the error tells";
}

TEST(Stuck, ActorsTellWhatTheyWaitForInTheirOwnWords) {
  Script root;
  root.waiting_for = [] { return std::string("a word from above"); };
  Stage stage;
  stage.actor("root", "", root);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_TRUE(end.error.has_value());
  EXPECT_THAT(end.error->message, HasSubstr("root: waits for a word from above"));
}

TEST(Stuck, TimersAloneEndTheRunAfterStuckAfter) {
  Script beating;
  beating.start = [](Context& context) { context.after(seconds(1)); };
  beating.timer = [](Context& context, TimerId) { context.after(seconds(1)); };
  Stage stage;
  stage.options().stuck_after = seconds(30);
  stage.actor("root", "", Script{}).actor("monitor", "root", beating);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_TRUE(end.error.has_value());
  EXPECT_THAT(end.error->message, HasSubstr("nothing but timers has moved for 30.0 s"));
  EXPECT_EQ(stage.clock().now(), seconds(30));
}

TEST(Stuck, ActorThatPostsProgressMayWaitAsLongAsItLikes) {
  int beats = 0;
  Script beating;
  beating.start = [](Context& context) { context.after(seconds(20)); };
  beating.timer = [&](Context& context, TimerId) {
    context.post_progress();
    if (++beats == 10) {
      context.finish();
    } else {
      context.after(seconds(20));
    }
  };
  Stage stage;
  stage.options().stuck_after = seconds(30);
  stage.actor("root", "", root_of(1)).actor("monitor", "root", beating);
  EXPECT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_EQ(beats, 10);
}

TEST(Stuck, DeadlockWhileStoppingDoesNotWaitForTheDeadline) {
  Script stubborn;
  stubborn.stop = [](Context&) {};
  Stage stage;
  stage.actor("root", "", stubborn);
  const NodeEnd end = stage.run_in_steps(1);
  EXPECT_THAT(end.unstopped, ::testing::ElementsAre("root"));
  ASSERT_TRUE(end.error.has_value());
  EXPECT_THAT(end.error->message, HasSubstr("nothing can move any more"));
  EXPECT_EQ(stage.clock().now(), seconds(0));
}

TEST(Stuck, LongHandlerIsNamedAndTheRunGoesOn) {
  Stage stage;
  Script busy;
  busy.receive = [&](Context& context, Message) {
    while (stage.log_lines().find("culprit: busy, whose handler") == std::string::npos) {
    }
    context.finish();
  };
  Script sender;
  sender.start = [](Context& context) {
    context.send("out", Message::of(Number{1}));
    context.finish();
  };
  stage.options().stuck_after = milliseconds(50);
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("busy", "root", busy, true).link("sender", "busy", 1);
  const NodeEnd end = stage.run_on_threads();
  EXPECT_FALSE(end.error.has_value());
  EXPECT_THAT(stage.log_lines(), HasSubstr("no progress for 0.1 s"));
}

TEST(Stuck, WaitForGraphCanBeAskedForAnyTime) {
  std::atomic<bool> over{false};
  Script receiver;
  receiver.receive = [left = 20000](Context& context, Message) mutable {
    if (--left == 0) context.finish();
  };
  receiver.waiting_for = [] { return std::string("numbers"); };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", counting_sender(20000));
  stage.actor("receiver", "root", receiver, true).link("sender", "receiver", 4);
  Node& node = stage.make_on_threads();
  std::future<int> asker = std::async(std::launch::async, [&] {
    int looks = 0;
    while (!over) {
      EXPECT_THAT(node.wait_for_graph(), Not(HasSubstr("culprit")));
      EXPECT_EQ(node.actor_stats().size(), 3u);
      ++looks;
    }
    return looks;
  });
  const NodeEnd end = node.run();
  over = true;
  EXPECT_GT(asker.get(), 0);
  EXPECT_FALSE(end.error.has_value());
  EXPECT_EQ(stage.link_stats("sender").sent, 20000);
}

}  // namespace
}  // namespace troupe::runtime
