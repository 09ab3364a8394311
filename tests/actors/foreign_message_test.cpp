// What actors make of messages that their own peers would not send: another node may say anything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "actors/coordinator.h"
#include "actors/monitor.h"
#include "tests/actors/theatre.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::ErrorKind;
using runtime::Message;
using runtime::NodeEnd;
using runtime::Script;
using testing::ElementsAre;
using testing::HasSubstr;

// What a Monitor that hears this from its root makes of it.
struct Monitored {
  std::vector<std::uint64_t> steps;  // in metrics.jsonl
  std::string log;
};

Monitored monitor(Script root) {
  const TemporaryFolder folder;
  Toy toy;
  MonitorOptions options;
  options.sinks.metrics_path = folder / "metrics.jsonl";
  options.losses = toy.topology().model.gan.losses;
  options.schedule = toy.context().options.schedule;
  options.first_step = 6;
  options.progress.iterations = 3;
  root.receive = [](Context& context, const Message&) { context.finish(); };
  runtime::FileDisk disk;
  Play play;
  play.actor("coordinator", root);
  play.actor("monitor", [&] { return std::make_unique<Monitor>(options, disk); });
  play.link("coordinator", "metrics", "monitor", "metrics", runtime::Lane::kMetrics);
  const NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  Monitored monitored;
  monitored.log = play.log_lines();
  std::ifstream file(options.sinks.metrics_path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(R"({"kind":"step")")) continue;
    const std::string key = "\"step\":";
    monitored.steps.push_back(std::stoull(line.substr(line.find(key) + key.size())));
  }
  return monitored;
}

// As the toy's replicas make them.
StepMetrics toy_step(std::uint64_t number) {
  StepMetrics step;
  step.step = number;
  step.iteration = number / 4;
  step.slot = static_cast<std::uint32_t>(number % 4);
  step.losses.resize(Toy().topology().model.gan.losses.size());
  return step;
}

void tell(Context& context, StepMetrics step) {
  context.send("metrics", Message::of(std::move(step)));
}

TEST(ForeignMessage, StepThatIsNotToComeLeavesNoMetrics) {
  const std::function<void(StepMetrics&)> changes[] = {
      [](StepMetrics& step) { step.slot = 4'000'000'000; },
      [](StepMetrics& step) { step.losses.resize(256); },
      [](StepMetrics& step) { step.iteration = UINT64_MAX; },
      [](StepMetrics& step) { step.step = UINT64_MAX; },
      [](StepMetrics& step) { step = toy_step(12); },  // beyond the last iteration
      [](StepMetrics& step) { step = toy_step(5); },   // before the run began
  };
  Script root;
  root.start = [&](Context& context) {
    for (const auto& change : changes) {
      StepMetrics step = toy_step(7);
      change(step);
      tell(context, step);
    }
    tell(context, toy_step(7));
    tell(context, toy_step(7));
    tell(context, toy_step(6));
    context.after(std::chrono::seconds(2));
  };
  root.timer = [](Context& context, runtime::TimerId) {
    context.send_control("monitor", Message::of(FinishMetrics{}));
  };
  const Monitored monitored = monitor(root);
  EXPECT_THAT(monitored.steps, ElementsAre(7));
  EXPECT_THAT(monitored.log, HasSubstr("lacks 1 lines"));
}

// Between nodes metrics are on another way than control.
TEST(EndOfMetrics, StepsThatTheEndHasOvertakenAreAwaited) {
  Script root;
  root.start = [](Context& context) {
    tell(context, toy_step(6));
    context.send_control("monitor", Message::of(FinishMetrics{9, toy_step(8)}));
    context.after(std::chrono::milliseconds(500));
  };
  root.timer = [](Context& context, runtime::TimerId) {
    tell(context, toy_step(7));
    tell(context, toy_step(8));
  };
  const Monitored monitored = monitor(root);
  EXPECT_THAT(monitored.steps, ElementsAre(6, 7, 8));
  EXPECT_EQ(monitored.log, "");
}

TEST(EndOfMetrics, StepsAreAwaitedAsLongAsTheyCome) {
  Script root;
  auto next = std::make_shared<std::uint64_t>(6);
  root.start = [](Context& context) {
    context.send_control("monitor", Message::of(FinishMetrics{12, toy_step(11)}));
    context.after(std::chrono::milliseconds(700));
  };
  root.timer = [next](Context& context, runtime::TimerId) {
    tell(context, toy_step((*next)++));
    context.after(std::chrono::milliseconds(700));
  };
  const Monitored monitored = monitor(root);
  EXPECT_THAT(monitored.steps, ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_EQ(monitored.log, "");
}

TEST(EndOfMetrics, NewestStepIsWrittenThoughItWasDroppedOnTheWay) {
  Script root;
  root.start = [](Context& context) {
    tell(context, toy_step(6));
    context.send_control("monitor", Message::of(FinishMetrics{9, toy_step(8)}));
  };
  const Monitored monitored = monitor(root);
  EXPECT_THAT(monitored.steps, ElementsAre(6, 8));
  EXPECT_THAT(monitored.log, HasSubstr("lacks 1 lines of steps"));
}

TEST(EndOfMetrics, NewestStepIsWrittenThoughReplica0NeverToldIt) {
  Script root;
  root.start = [](Context& context) {
    tell(context, toy_step(6));
    context.after(std::chrono::milliseconds(500));
  };
  root.timer = [](Context& context, runtime::TimerId) {
    context.send_control("monitor", Message::of(FinishMetrics{0, toy_step(7)}));
  };
  EXPECT_THAT(monitor(root).steps, ElementsAre(6, 7));
}

// A run of two replicas one of which fails while it trains, and what it came to.
struct FailedReplica {
  NodeEnd end;
  std::shared_ptr<RunOutcome> outcome = std::make_shared<RunOutcome>();
  FinishMetrics finish;  // what the monitor heard
};

FailedReplica run_with_failed(std::uint32_t failed) {
  FailedReplica run;
  Toy toy;
  Play play;
  play.actor("coordinator", [&] {
    CoordinatorOptions options;
    options.state = toy.state(0);
    options.membership.replicas_per_member = 2;
    options.membership.weights = {1, 1};
    options.membership.micro_batches = 4;
    options.validate = false;
    return std::make_unique<Coordinator>(options, run.outcome);
  });
  Script survivor;
  survivor.receive = [&](Context& context, const Message& message) {
    if (message.as<StopTraining>() == nullptr) return;
    ReplicaEnd end;
    end.replica = 1 - failed;
    end.state = toy.state(3);
    end.last_step = toy_step(11);
    context.send_control("coordinator", Message::of(std::move(end)));
  };
  const std::string name = "replica." + std::to_string(failed);
  Script failing;
  failing.receive = [&](Context& context, const Message& message) {
    if (message.as<BeginTraining>() == nullptr) return;
    context.send_control("coordinator",
                         Message::of(MemberFailed{name, {ErrorKind::kInternal, "it broke"}}));
  };
  Script answering;
  answering.receive = [&](Context& context, Message message) {
    if (message.as<FinishMetrics>() != nullptr && context.name() == "checkpointer") {
      context.send_control("monitor", std::move(message));
    } else if (message.as<LastState>() != nullptr || message.as<FinishMetrics>() != nullptr) {
      if (const auto* finish = message.as<FinishMetrics>()) run.finish = *finish;
      context.send_control("coordinator", Message::of(LastStateDone{}));
    }
  };
  play.actor("reducer", Script{});
  play.actor("replica.0", failed == 0 ? failing : survivor);
  play.actor("replica.1", failed == 1 ? failing : survivor);
  play.actor("checkpointer", answering).actor("monitor", answering);
  run.end = play.run(1);
  return run;
}

// A replica on another node that failed reports nothing any more: the run must not wait for it.
TEST(ForeignMessage, ReplicaThatFailedElsewhereEndsTheRunWithWhatTheOthersHave) {
  const FailedReplica run = run_with_failed(1);
  ASSERT_TRUE(run.end.error);
  EXPECT_THAT(run.end.error->message, HasSubstr("it broke"));
  EXPECT_TRUE(run.outcome->saved);
  ASSERT_NE(run.outcome->state, nullptr);
  EXPECT_EQ(run.outcome->state->iteration, 3U);
  EXPECT_EQ(run.finish.told_until, 12U);
}

TEST(ForeignMessage, NewestStepIsToldThoughTheReplicaThatTellsStepsFailed) {
  const FailedReplica run = run_with_failed(0);
  ASSERT_TRUE(run.end.error);
  EXPECT_TRUE(run.outcome->saved);
  EXPECT_EQ(run.finish.told_until, 0U);
  ASSERT_TRUE(run.finish.newest);
  EXPECT_EQ(run.finish.newest->step, 11U);
}

}  // namespace
}  // namespace troupe::actors
