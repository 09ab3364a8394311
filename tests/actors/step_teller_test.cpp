#include "actors/step_teller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
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

// Tells steps of a strategy to a Monitor with room for two, and takes those that come to it.
class Telling {
 public:
  explicit Telling(pipeline::StrategyKind strategy) : options_(toy_.context().options) {
    options_.strategy.kind = strategy;
    options_.worker.emplace();
    teller_.emplace(0, TrainingContext{toy_.context().gan, toy_.context().backend, options_});
  }

  // So many steps at once, and then every millisecond what the replica does: turn(context).
  std::vector<std::uint64_t> run(std::uint64_t at_once, std::function<void(Context&)> turn) {
    std::vector<std::uint64_t> come;
    Script root, monitor;
    root.start = [&](Context& context) {
      teller_->start(context);
      teller_->enter(context, leads_, 1);
      while (told_ < at_once) tell_next(context);
      context.after(milliseconds(1));
    };
    int turns = 0;
    root.timer = [&](Context& context, runtime::TimerId) {
      if (++turns > 40) return context.finish();
      turn(context);
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

  void tell_next(Context& context) {
    StepMetrics metrics;
    metrics.step = told_++;
    teller_->tell(context, engine_, {}, std::move(metrics), false);
  }
  StepTeller& teller() { return *teller_; }
  // From the beginning.
  void leads(bool leads) { leads_ = leads; }

 private:
  Toy toy_;
  pipeline::TrainingOptions options_;
  StepEngine engine_{{}, toy_.context()};
  std::optional<StepTeller> teller_;
  std::uint64_t told_ = 0;
  bool leads_ = true;
};

std::vector<std::uint64_t> first_steps(std::uint64_t count) {
  std::vector<std::uint64_t> steps(count);
  std::iota(steps.begin(), steps.end(), 0);
  return steps;
}

constexpr pipeline::StrategyKind kTurns[] = {
    pipeline::StrategyKind::kDownpour, pipeline::StrategyKind::kEasgd, pipeline::StrategyKind::kGem,
    pipeline::StrategyKind::kQuorum};

TEST(StepTeller, LinesAreDroppedInFrontOfASlowMonitor) {
  Telling telling(pipeline::StrategyKind::kLocal);
  const auto come = telling.run(20, [&](Context& context) { telling.tell_next(context); });
  EXPECT_THAT(come, Contains(1));
  EXPECT_THAT(come, Not(Contains(2)));
  EXPECT_THAT(come, Contains(40));
}

TEST(StepTeller, LinesOfTurnsAreTheirOrderAndWaitForALaterStep) {
  for (const auto strategy : kTurns) {
    Telling telling(strategy);
    std::uint64_t more = 20;
    const auto come = telling.run(20, [&](Context& context) {
      if (more == 0) return;
      --more;
      telling.tell_next(context);
    });
    EXPECT_EQ(come, first_steps(40));
  }
}

TEST(StepTeller, LinesOfTurnsAreToldBehindTheLastStep) {
  for (const auto strategy : kTurns) {
    Telling telling(strategy);
    const auto come =
        telling.run(20, [&](Context& context) { telling.teller().tell_untold(context); });
    EXPECT_EQ(come, first_steps(20));
  }
}

// The head asks the leader of the next View, which may have to be given sums before it enters that.
TEST(StepTeller, StepsThatAreAskedForAreToldWhenTheReplicaLeadsAndHasThemAll) {
  for (const bool comes_to_lead : {true, false}) {
    Telling telling(pipeline::StrategyKind::kLocal);
    telling.leads(false);
    int turns = 0;
    const auto come = telling.run(3, [&](Context& context) {
      if (turns == 0) telling.teller().tell_again(context, 1);
      if (turns == 1) telling.tell_next(context);
      if (turns == 2) telling.teller().enter(context, comes_to_lead, 1);
      if (turns == 3) telling.tell_next(context);
      if (turns++ > 3) telling.teller().tell_untold(context);
    });
    const std::vector<std::uint64_t> all{1, 2, 3, 4};
    EXPECT_EQ(come, comes_to_lead ? all : std::vector<std::uint64_t>());
  }
}

TEST(StepTeller, StepsThatAreAskedForAroundTheLastAreToldBehindIt) {
  for (const int asked : {0, 2}) {
    Telling telling(pipeline::StrategyKind::kLocal);
    telling.leads(false);
    int turns = 0;
    const auto come = telling.run(3, [&](Context& context) {
      if (turns == asked) telling.teller().tell_again(context, 1);
      if (turns++ == 1) telling.teller().finish(context);
      telling.teller().tell_untold(context);
    });
    EXPECT_EQ(come, (std::vector<std::uint64_t>{1, 2})) << asked;
  }
}

TEST(StepTeller, IsFullBeforeALineOfATurnIsDropped) {
  Telling telling(pipeline::StrategyKind::kGem);
  std::uint64_t most = 0;
  telling.run(1, [&](Context& context) {
    for (; most < 2 * kRememberedSteps && !telling.teller().is_full(); ++most) {
      telling.tell_next(context);
    }
  });
  EXPECT_LT(most, kRememberedSteps);
  Telling other(pipeline::StrategyKind::kLocal);
  other.run(kRememberedSteps, [&](Context&) { EXPECT_FALSE(other.teller().is_full()); });
}

}  // namespace
}  // namespace troupe::actors
