// Failing, restarting and stopping actors in a running node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Script failing_at_start() {
  Script script;
  script.start = [](Context& context) {
    context.fail({ErrorKind::kDiverged, "NaN in conv1"});
    context.fail({ErrorKind::kData, "only the first counts"});
    context.finish();
  };
  return script;
}

TEST(Supervision, FailureEscalatesToTheRootAndEndsTheNode) {
  std::vector<std::string> stopped;
  Script bystander;
  bystander.stop = [&](Context& context) {
    stopped.push_back(context.name());
    context.finish();
  };
  Stage stage;
  stage.actor("root", "", Script{}).actor("branch", "root", Script{});
  stage.actor("leaf", "branch", failing_at_start()).actor("bystander", "branch", bystander);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_TRUE(end.error.has_value());
  EXPECT_EQ(end.error->kind, ErrorKind::kDiverged);
  EXPECT_EQ(end.error->message, "leaf: NaN in conv1");
  EXPECT_THAT(stopped, ElementsAre("bystander"));
  EXPECT_TRUE(end.unstopped.empty());
}

TEST(Supervision, OwnerMayGoOnWithoutAChild) {
  Script root;
  root.child_ended = [](Context& context, const ChildEnd& end) {
    EXPECT_EQ(end.name, "leaf");
    context.finish();
    return ChildDecision::kIgnore;
  };
  Stage stage;
  stage.actor("root", "", root).actor("leaf", "root", failing_at_start());
  EXPECT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_THAT(stage.log_lines(), HasSubstr("goes on without leaf"));
}

TEST(Supervision, GoodEndMayBeEscalatedToo) {
  Script root;
  root.child_ended = [](Context&, const ChildEnd&) { return ChildDecision::kEscalate; };
  Script leaf;
  leaf.start = [](Context& context) { context.finish(); };
  Stage stage;
  stage.actor("root", "", root).actor("leaf", "root", leaf);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_TRUE(end.error.has_value());
  EXPECT_THAT(end.error->message, HasSubstr("leaf ended, but root cannot go on without it"));
}

TEST(Supervision, EscapedExceptionIsAFailure) {
  Script script;
  script.start = [](Context&) { throw std::runtime_error("odd"); };
  Stage stage;
  stage.actor("root", "", script);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_TRUE(end.error.has_value());
  EXPECT_EQ(end.error->message, "root: an exception escaped: odd");
}

// A study takes it for a fault of the settings, by its kind.
TEST(Supervision, ExhaustedMemoryIsAFailureInPlainWords) {
  const std::vector<std::function<void()>> ways{
      [] { throw std::bad_alloc(); },
      [] {
        static_cast<void>(
            std::allocator<double>().allocate(std::numeric_limits<std::size_t>::max()));
      }};
  for (const auto& way : ways) {
    Script script;
    script.start = [&way](Context&) { way(); };
    Stage stage;
    stage.actor("root", "", script);
    const NodeEnd end = stage.run_in_steps(1);
    ASSERT_TRUE(end.error.has_value());
    EXPECT_EQ(end.error->kind, ErrorKind::kTopology);
    EXPECT_THAT(end.error->message, HasSubstr("root: there is no memory left; "));
  }
}

TEST(Supervision, RestartedActorIsMadeAnewAndItsLinksWork) {
  int incarnation = 0;
  int arrived = 0;
  int returned = 0;
  const ScriptMaker receiver = [&] {
    Script script;
    const int number = ++incarnation;
    script.receive = [&, number](Context& context, Message message) {
      if (number < 3 && message.as<Number>()->value % 10 == 5) {
        context.fail({ErrorKind::kInternal, "stumbled"});
      } else if (++arrived + returned == 38) {
        context.finish();
      }
    };
    return script;
  };
  auto next = std::make_shared<int>(0);
  const auto send = [next](Context& context) {
    while (*next < 40 && context.send("out", Message::of(Number{*next}))) ++*next;
  };
  Script sender;
  sender.start = send;
  sender.credit_returned = [send](Context& context, std::string_view) { send(context); };
  sender.undeliverable = [&](Context&, Message, const Error& cause) {
    EXPECT_THAT(cause.message, HasSubstr("receiver has failed: receiver: stumbled"));
    ++returned;
  };
  std::vector<int> restarts;
  Script root;
  root.child_ended = [&](Context& context, const ChildEnd& end) {
    if (!end.error) {
      context.finish();
      return ChildDecision::kIgnore;
    }
    restarts.push_back(end.restarts);
    return ChildDecision::kRestart;
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    incarnation = arrived = returned = *next = 0;
    restarts.clear();
    Stage stage;
    stage.actor("root", "", root).actor("sender", "root", sender);
    stage.actor("receiver", "root", receiver).link("sender", "receiver", 3);
    (void)stage.run_in_steps(seed);
    // A message is handled, or comes back, or is the one stumbled over.
    EXPECT_EQ(arrived + returned + static_cast<int>(restarts.size()), 40) << "seed " << seed;
    EXPECT_FALSE(restarts.empty());
    for (std::size_t i = 0; i < restarts.size(); ++i) EXPECT_EQ(restarts[i], static_cast<int>(i));
    EXPECT_EQ(stage.link_stats("sender").in_use_messages, 0);
  }
}

TEST(Supervision, TimersOfAnEndedActorDoNotReachTheNextOne) {
  int incarnation = 0;
  const ScriptMaker maker = [&] {
    Script script;
    const int number = ++incarnation;
    script.start = [number](Context& context) {
      context.after(seconds(number == 1 ? 1 : 5));
      if (number == 1) context.fail({ErrorKind::kInternal, "early"});
    };
    script.timer = [](Context& context, TimerId) {
      EXPECT_EQ(context.now(), seconds(5));
      context.finish();
    };
    return script;
  };
  Script root;
  root.child_ended = [](Context& context, const ChildEnd& end) {
    if (!end.error) context.finish();
    return end.error ? ChildDecision::kRestart : ChildDecision::kIgnore;
  };
  Stage stage;
  stage.actor("root", "", root).actor("leaf", "root", maker);
  EXPECT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_EQ(incarnation, 2);
}

TEST(Supervision, EndsThatAnOwnerDidNotLiveToSeeReachTheNode) {
  Script root;
  root.start = [](Context& context) { context.finish(); };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Stage stage;
    stage.actor("root", "", root).actor("leaf", "root", failing_at_start());
    const NodeEnd end = stage.run_in_steps(seed);
    ASSERT_TRUE(end.error.has_value()) << "seed " << seed;
    EXPECT_EQ(end.error->message, "leaf: NaN in conv1");
  }
}

TEST(Supervision, EndThatMeetsAnOwnerBeingDestroyedReachesTheNode) {
  std::promise<void> root_ends;
  Stage stage;
  // Goes with the root's actor, and holds it up until the leaf has ended.
  struct HoldUp {
    std::promise<void>& root_ends;
    Stage& stage;
    ~HoldUp() {
      root_ends.set_value();
      while (stage.node().actor_stats()[1].state != "ended") {
      }
    }
  };
  stage.actor("root", "", [&] {
    Script script;
    auto hold_up = std::shared_ptr<HoldUp>(new HoldUp{root_ends, stage});
    script.start = [hold_up](Context& context) { context.finish(); };
    return script;
  });
  Script leaf;
  leaf.start = [&](Context& context) {
    root_ends.get_future().wait();
    context.fail({ErrorKind::kData, "disk full"});
  };
  stage.actor("leaf", "root", leaf, true);
  const NodeEnd end = stage.run_on_threads();
  ASSERT_TRUE(end.error.has_value());
  EXPECT_EQ(end.error->message, "leaf: disk full");
}

TEST(Supervision, RestartRenewsTheWholeSubtree) {
  int leaves = 0;
  const ScriptMaker leaf = [&] {
    ++leaves;
    return Script{};
  };
  int branches = 0;
  const ScriptMaker branch = [&] {
    Script script;
    const int number = ++branches;
    script.start = [number](Context& context) { context.after(seconds(number)); };
    script.timer = [number](Context& context, TimerId) {
      number < 3 ? context.fail({ErrorKind::kInternal, "again"}) : context.finish();
    };
    return script;
  };
  Stage stage;
  stage.actor("root", "", [] {
    Script script;
    script.child_ended = [](Context& context, const ChildEnd& end) {
      if (!end.error) context.finish();
      return end.error ? ChildDecision::kRestart : ChildDecision::kIgnore;
    };
    return script;
  });
  stage.actor("branch", "root", branch).actor("leaf", "branch", leaf);
  const NodeEnd end = stage.run_in_steps(1);
  EXPECT_FALSE(end.error.has_value());
  EXPECT_EQ(branches, 3);
  EXPECT_EQ(leaves, 3);
}

TEST(Shutdown, RequestBeforeTheBeginIsHeard) {
  Stage stage;
  stage.actor("root", "", Script{});
  Node& node = stage.make_in_steps(1);
  node.request_stop();
  EXPECT_FALSE(node.run().error.has_value());
}

TEST(Shutdown, ActorThatDoesNotStopIsNamedAtTheDeadline) {
  Script stubborn;
  stubborn.stop = [](Context& context) { context.after(seconds(1000)); };
  Stage stage;
  stage.options().shutdown_deadline = seconds(7);
  stage.actor("root", "", Script{}).actor("stubborn", "root", stubborn);
  stage.actor("willing", "root", Script{});
  Node& node = stage.make_in_steps(1);
  node.begin();
  node.request_stop();
  while (!node.tend()) stage.scheduler().wait(node.next_due());
  const NodeEnd end = node.end();
  ASSERT_TRUE(end.error.has_value());
  EXPECT_EQ(end.error->kind, ErrorKind::kInternal);
  EXPECT_THAT(end.error->message, HasSubstr("deadline of 7.0 s"));
  EXPECT_THAT(end.error->message, HasSubstr("not stopped: stubborn"));
  EXPECT_THAT(end.error->message, HasSubstr("stubborn: stopping"));
  EXPECT_THAT(end.unstopped, ElementsAre("stubborn"));
  EXPECT_TRUE(end.abandoned.empty());
  EXPECT_EQ(stage.clock().now(), seconds(7));
}

TEST(Shutdown, DeadlineMayLieBeyondStuckAfter) {
  Script stubborn;
  stubborn.stop = [](Context& context) { context.after(seconds(1000)); };
  Stage stage;
  stage.options().shutdown_deadline = seconds(100);
  stage.options().stuck_after = seconds(30);
  stage.actor("root", "", stubborn);
  Node& node = stage.make_in_steps(1);
  node.begin();
  node.request_stop();
  while (!node.tend()) stage.scheduler().wait(node.next_due());
  EXPECT_THAT(node.end().unstopped, ElementsAre("root"));
  EXPECT_EQ(stage.clock().now(), seconds(100));
}

TEST(Shutdown, SecondRequestGivesUpAtOnce) {
  Script stubborn;
  stubborn.stop = [](Context& context) { context.after(seconds(1000)); };
  Stage stage;
  stage.actor("root", "", stubborn);
  Node& node = stage.make_in_steps(1);
  node.begin();
  node.request_stop();
  node.request_stop();
  EXPECT_TRUE(node.tend());
  const NodeEnd end = node.end();
  EXPECT_THAT(end.unstopped, ElementsAre("root"));
  ASSERT_TRUE(end.error.has_value());
  EXPECT_THAT(end.error->message, HasSubstr("asked a second time"));
}

TEST(Shutdown, HandlerThatNeverReturnsIsAbandonedAndNamed) {
  std::promise<void> let_go;
  std::promise<void> destroyed;
  std::promise<void> began;
  struct Tell {
    std::promise<void>& promise;
    ~Tell() { promise.set_value(); }
  };
  const ScriptMaker stuck = [&] {
    Script script;
    auto tell = std::shared_ptr<Tell>(new Tell{destroyed});
    script.start = [&, tell](Context&) {
      began.set_value();
      let_go.get_future().wait();
    };
    return script;
  };
  Stage stage;
  stage.options().shutdown_deadline = milliseconds(50);
  stage.actor("root", "", Script{}).actor("stuck", "root", stuck, true);
  Node& node = stage.make_on_threads();
  std::future<NodeEnd> end = std::async(std::launch::async, [&] { return node.run(); });
  began.get_future().wait();
  node.request_stop();
  const NodeEnd result = end.get();
  EXPECT_THAT(result.unstopped, ElementsAre("stuck"));
  EXPECT_THAT(result.abandoned, ElementsAre("stuck"));
  ASSERT_TRUE(result.error.has_value());
  EXPECT_THAT(result.error->message, HasSubstr("stuck: stopping; a handler has been running for "));
  EXPECT_THAT(result.error->message, HasSubstr("culprit: stuck, whose handler"));
  EXPECT_THAT(stage.log_lines(), Not(HasSubstr("not stopped"))) << "whoever reads the error tells";
  stage.drop_node();
  let_go.set_value();
  destroyed.get_future().wait();
}

TEST(Shutdown, NodeThatIsDroppedBeforeItsEndEndsItself) {
  const auto witness = std::make_shared<int>(0);
  {
    Stage stage;
    Script script;
    script.start = [witness](Context&) {};
    stage.actor("root", "", script);
    stage.make_on_threads().begin();
  }
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace troupe::runtime
