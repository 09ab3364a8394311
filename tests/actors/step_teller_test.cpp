#include "actors/step_teller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "actors/step_engine.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Script;
using std::chrono::milliseconds;
using testing::Contains;
using testing::Not;

// The steps that the Monitor gets of 20 that are told before it takes the first, with room for two,
// and of 20 more, one each millisecond.
std::vector<std::uint64_t> steps_that_come(pipeline::StrategyKind strategy) {
  Toy toy;
  pipeline::TrainingOptions options = toy.context().options;
  options.strategy.kind = strategy;
  options.worker.emplace();
  StepEngine engine({}, toy.context());
  StepTeller teller(0, {toy.context().gan, toy.context().backend, options});
  std::vector<std::uint64_t> come;
  Script root, monitor;
  std::uint64_t told = 0;
  const auto tell_next = [&](Context& context) {
    StepMetrics metrics;
    metrics.step = told++;
    teller.tell(context, engine, {}, std::move(metrics), false);
  };
  root.start = [&](Context& context) {
    teller.start(context);
    teller.enter(true);
    while (told < 20) tell_next(context);
    context.after(milliseconds(1));
  };
  root.timer = [&](Context& context, runtime::TimerId) {
    if (told == 40) return context.finish();
    tell_next(context);
    context.after(milliseconds(1));
  };
  monitor.receive = [&](Context&, const Message& message) {
    come.push_back(message.as<StepMetrics>()->step);
  };
  Play play;
  play.actor("replica.0", root).actor("monitor", monitor);
  play.link("replica.0", "metrics", "monitor", "metrics", runtime::Lane::kMetrics, 2);
  const auto end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  return come;
}

TEST(StepTeller, LinesAreDroppedInFrontOfASlowMonitor) {
  const auto come = steps_that_come(pipeline::StrategyKind::kLocal);
  EXPECT_THAT(come, Contains(1));
  EXPECT_THAT(come, Not(Contains(2)));
  EXPECT_THAT(come, Contains(39));
}

TEST(StepTeller, LinesOfTurnsAreTheirOrderAndWait) {
  for (const auto strategy : {pipeline::StrategyKind::kDownpour, pipeline::StrategyKind::kQuorum}) {
    const auto come = steps_that_come(strategy);
    EXPECT_GT(come.size(), 30u);
    for (std::size_t i = 0; i < come.size(); ++i) EXPECT_EQ(come[i], i);
  }
}

}  // namespace
}  // namespace troupe::actors
