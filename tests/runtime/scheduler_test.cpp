// Determinism of the StepScheduler, and the same plans under load on threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "runtime/base/random.h"
#include "runtime/thread_scheduler.h"
#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;

// Every event of a run of three senders, a relay that stumbles and is restarted, and a receiver.
std::vector<std::string> events_of(std::uint64_t seed) {
  std::vector<std::string> events;
  int relays = 0;
  Stage stage;
  Script root;
  root.child_ended = [&, left = 4](Context& context, const ChildEnd& end) mutable {
    events.push_back("root: end of " + end.name);
    if (end.error) return ChildDecision::kRestart;
    if (--left == 0) context.finish();
    return ChildDecision::kIgnore;
  };
  stage.actor("root", "", root);
  for (const std::string name : {"a", "b", "c"}) {
    Script sender;
    sender.start = [&, name](Context& context) {
      events.push_back(name + " starts");
      for (int i = 0; i < 5; ++i) context.send("out", Message::of(Number{i}));
      context.finish();
    };
    stage.actor(name, "root", sender).link(name, "relay", 5);
  }
  stage.actor("relay", "root", [&] {
    Script relay;
    const bool stumbles = ++relays == 1;
    relay.receive = [&, stumbles](Context& context, Message message) {
      events.push_back("relay: " + std::string(message.sender_name()));
      if (stumbles && message.as<Number>()->value == 3) {
        context.fail({ErrorKind::kInternal, "stumbled"});
      } else {
        context.send("out", message);
      }
    };
    return relay;
  });
  Script receiver;
  receiver.start = [](Context& context) { context.after(milliseconds(5)); };
  receiver.receive = [&](Context&, Message message) {
    events.push_back("receiver: " + std::to_string(message.as<Number>()->value));
  };
  receiver.timer = [&](Context& context, TimerId) {
    events.push_back("receiver: time");
    context.finish();
  };
  stage.actor("receiver", "root", receiver).link("relay", "receiver", 20);
  const NodeEnd end = stage.run_in_steps(seed);
  EXPECT_FALSE(end.error.has_value()) << end.error->message;
  return events;
}

TEST(StepScheduler, SameSeedGivesTheSameRun) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) EXPECT_EQ(events_of(seed), events_of(seed));
}

TEST(StepScheduler, OtherSeedsGiveOtherRuns) {
  std::set<std::vector<std::string>> runs;
  for (std::uint64_t seed = 0; seed < 30; ++seed) runs.insert(events_of(seed));
  EXPECT_GT(runs.size(), 25u);
}

TEST(StepScheduler, TimePassesInAPlanThatIsNeverIdle) {
  int turns = 0;
  Script script;
  script.start = [](Context& context) {
    context.send("out", Message::of(Number{0}));
    context.after(milliseconds(1));
  };
  script.receive = [&](Context& context, Message message) {
    ++turns;
    context.send("out", message);
  };
  script.timer = [](Context& context, TimerId) { context.finish(); };
  Plan plan;
  plan.actors = {{"root", "", "", false}};
  plan.links = {{"root", "out", "root", "in", Lane::kData, 1, 1000, 1}};
  ManualClock clock;
  StepScheduler scheduler(5, clock, std::chrono::microseconds(10));
  Log log = Log::silent();
  const auto factory = [&](const ActorPlan&) { return std::make_unique<ScriptedActor>(script); };
  Node node(plan, factory, {}, clock, log, scheduler);
  EXPECT_FALSE(node.run().error.has_value());
  EXPECT_GE(turns, 98);
  EXPECT_LE(turns, 102);
}

TEST(StepScheduler, TwoNodesShareOneSchedulerAndOneClock) {
  ManualClock clock;
  StepScheduler scheduler(5, clock);
  Log log = Log::silent();
  Plan plan;
  plan.actors = {{"root", "", "", false}};
  std::vector<std::pair<int, int>> beats;  // node, second
  const auto factory = [&](int node, int period_s) {
    return [&beats, node, period_s](const ActorPlan&) {
      Script script;
      script.start = [period_s](Context& context) {
        context.after(std::chrono::seconds(period_s));
      };
      script.timer = [&beats, node, period_s](Context& context, TimerId) {
        beats.emplace_back(node, static_cast<int>(context.now() / std::chrono::seconds(1)));
        if (beats.size() >= 4) {
          context.finish();
        } else {
          context.after(std::chrono::seconds(period_s));
        }
      };
      return std::make_unique<ScriptedActor>(script);
    };
  };
  Node first(plan, factory(1, 2), {}, clock, log, scheduler);
  Node second(plan, factory(2, 3), {}, clock, log, scheduler);
  first.begin();
  second.begin();
  bool first_over = false;
  bool second_over = false;
  while (!first_over || !second_over) {
    while (scheduler.run_one()) {
    }
    if (!first_over && first.tend()) first_over = true;
    if (!second_over && second.tend()) second_over = true;
    if (scheduler.runnable() > 0) continue;
    TimePoint due = TimePoint::max();
    if (!first_over) due = std::min(due, first.next_due());
    if (!second_over) due = std::min(due, second.next_due());
    if (due != TimePoint::max()) scheduler.wait(due);
  }
  EXPECT_FALSE(first.end().error.has_value());
  EXPECT_FALSE(second.end().error.has_value());
  using Beat = std::pair<int, int>;
  EXPECT_THAT(beats, ::testing::IsSupersetOf({Beat{1, 2}, Beat{2, 3}, Beat{1, 4}}));
}

// Pairs of actors pass numbers to and fro on threads while one actor of each chain fails now and
// then: every message sent is handled once or comes back once, or both ends had ended.
TEST(ThreadScheduler, LosesNothingWhileActorsFailAndRestart) {
  constexpr int kChains = 4;
  constexpr std::int64_t kMessages = 2000;
  std::atomic<std::int64_t> handled{0};
  std::atomic<std::int64_t> returned{0};
  Stage stage;
  Script root;
  // Its end waits for those of all that failed: one that comes later would be the node's error.
  std::atomic<int> failed{0};
  root.child_ended = [&failed, senders = kChains, seen = 0](Context& context,
                                                            const ChildEnd& end) mutable {
    end.error ? ++seen : --senders;
    if (senders == 0 && seen == failed) {
      context.finish();
      return ChildDecision::kIgnore;
    }
    return end.error ? ChildDecision::kRestart : ChildDecision::kIgnore;
  };
  stage.actor("root", "", root);
  for (int chain = 0; chain < kChains; ++chain) {
    const std::string sender_name = "sender" + std::to_string(chain);
    const std::string receiver_name = "receiver" + std::to_string(chain);
    Script sender;
    struct State {
      std::int64_t next = 0;
      std::int64_t answered = 0;
    };
    auto state = std::make_shared<State>();
    const auto go_on = [state](Context& context) {
      while (state->next < kMessages && context.send("out", Message::of(Number{state->next}))) {
        ++state->next;
      }
      if (state->answered == kMessages) context.finish();
    };
    sender.start = go_on;
    sender.credit_returned = [go_on](Context& context, std::string_view) { go_on(context); };
    sender.receive = [state, go_on](Context& context, Message) {
      ++state->answered;
      go_on(context);
    };
    sender.undeliverable = [state, go_on, &returned](Context& context, Message, const Error&) {
      ++state->answered;
      ++returned;
      go_on(context);
    };
    Script receiver;
    receiver.receive = [&handled, &failed](Context& context, Message message) {
      ++handled;
      const bool stumbles =
          mix64(static_cast<std::uint64_t>(message.as<Number>()->value)) % 50 == 0;
      if (stumbles) ++failed;
      context.send_control(message.sender_name(), Message::of(Number{0}));
      if (stumbles) context.fail({ErrorKind::kInternal, "stumbled"});
    };
    stage.actor(sender_name, "root", sender, chain % 2 == 0);
    stage.actor(receiver_name, "root", receiver, chain % 3 == 0);
    stage.link(sender_name, receiver_name, 8);
  }
  const NodeEnd end = stage.run_on_threads();
  ASSERT_FALSE(end.error.has_value()) << end.error->message;
  EXPECT_EQ(handled + returned, kChains * kMessages);
  EXPECT_GT(handled, 0);
}

TEST(ThreadScheduler, NeverRunsAnActorTwiceAtOnce) {
  constexpr int kSenders = 6;
  constexpr std::int64_t kMessages = 3000;
  int unguarded = 0;  // a data race for the thread sanitizer if two handlers overlap
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  Stage stage;
  stage.options().scheduler_threads = 4;
  stage.actor("root", "", root_of(kSenders + 1));
  Script receiver;
  receiver.receive = [&](Context& context, Message) {
    if (++inside != 1) ++overlaps;
    ++unguarded;
    --inside;
    if (unguarded == kSenders * kMessages) context.finish();
  };
  stage.actor("receiver", "root", receiver);
  for (int i = 0; i < kSenders; ++i) {
    const std::string name = "sender" + std::to_string(i);
    stage.actor(name, "root", ScriptMaker([] { return counting_sender(kMessages); }), i == 0);
    stage.link(name, "receiver", 16);
  }
  ASSERT_FALSE(stage.run_on_threads().error.has_value());
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(unguarded, kSenders * kMessages);
}

// A task that runs a function, once per enqueue.
class FunctionTask final : public Task {
 public:
  explicit FunctionTask(std::function<void()> function) : function_(std::move(function)) {}
  bool run_slice(int) override {
    function_();
    return false;
  }

 private:
  std::function<void()> function_;
};

// Each task of a chain makes the next one runnable and returns only when that has run, which takes
// another worker: all of them slept when the chain began.
TEST(ThreadScheduler, IdleWorkerFindsWhatLiesBehindARunningTask) {
  constexpr std::size_t kWorkers = 3;
  constexpr auto kGivenUp = std::chrono::seconds(20);
  const SteadyClock clock;
  ThreadScheduler scheduler(kWorkers, clock);
  std::array<std::atomic<bool>, kWorkers> ran{};
  const auto has_run = [&](std::size_t task) {
    const TimePoint give_up_at = clock.now() + kGivenUp;
    while (!ran[task] && clock.now() < give_up_at) std::this_thread::sleep_for(milliseconds(1));
    return ran[task].load();
  };
  std::deque<FunctionTask> chain;
  std::atomic<bool> in_time{true};
  for (std::size_t i = 0; i < kWorkers; ++i) {
    chain.emplace_back([&, i] {
      if (i + 1 < kWorkers) {
        scheduler.enqueue(chain[i + 1]);
        if (!has_run(i + 1)) in_time = false;
      }
      ran[i] = true;
    });
    scheduler.add(chain.back(), false, nullptr);
  }
  for (int round = 0; round < 20 && in_time; ++round) {
    for (auto& each : ran) each = false;
    std::this_thread::sleep_for(milliseconds(5));
    scheduler.enqueue(chain.front());
    ASSERT_TRUE(has_run(0));
  }
  EXPECT_TRUE(in_time);
  scheduler.retire({&chain[0], &chain[1], &chain[2]}, kGivenUp);
}

TEST(Trace, EveryHandlerIsInTheActorsRing) {
  Script receiver;
  receiver.receive = [left = 3](Context& context, Message) mutable {
    const std::uint32_t name = context.trace().name("kernel");
    context.trace().write({name, context.now(), context.now(), 42});
    if (--left == 0) context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", counting_sender(3));
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 8);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  std::vector<std::string> names;
  for (const ActorTrace& trace : stage.node().traces()) {
    if (trace.name != "receiver") continue;
    for (const TraceRecord& record : trace.trace.records) {
      EXPECT_FALSE(record.sent);
      names.push_back(trace.trace.names[record.name]);
    }
  }
  EXPECT_THAT(names, ::testing::ElementsAre("start", "kernel", "number", "kernel", "number",
                                            "kernel", "number"));
}

}  // namespace
}  // namespace troupe::runtime
