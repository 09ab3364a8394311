// The updates of turns against the papers' formulas in double, over many turns of several workers
// in an order that is not theirs.

#include "pipeline/steps/turn_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "pipeline/steps/training_state.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

constexpr std::size_t kWeights = 7, kWorkers = 3;
constexpr std::uint32_t kTurns = 200;

StrategyOptions of(StrategyKind kind) {
  StrategyOptions options;
  options.kind = kind;
  options.workers = kWorkers;
  return options;
}

// What a worker subtracts in a turn, as if it had gone down a bowl around 1, with noise.
float change_of(std::uint32_t turn, std::size_t i, double worker_weight) {
  const double noise =
      runtime::random_uniform({.seed = 5, .micro_batch = turn}, static_cast<std::uint32_t>(i)) -
      0.5;
  return static_cast<float>(0.1 * (worker_weight - 1.0) + 0.02 * noise);
}

std::size_t worker_of(std::uint32_t turn) {
  return static_cast<std::size_t>(runtime::random_uniform({.seed = 6}, turn) * kWorkers);
}

// A centre and its workers, whose turns are made by update_in_turn() in float, and by a formula of
// the test in double.
template <class Number>
struct System {
  std::vector<Number> centre;
  std::vector<std::vector<Number>> worker, moment, stale;

  System() : centre(kWeights) {
    for (std::size_t i = 0; i < kWeights; ++i) centre[i] = static_cast<Number>(i) - 3;
    worker.assign(kWorkers, centre);
    stale = worker;
    moment.assign(kWorkers, std::vector<Number>(kWeights));
  }
};

// formula(double system, worker, element, d) makes one element's turn.
template <class Formula>
void expect_turns(const StrategyOptions& options, const Formula& formula) {
  System<float> made;
  System<double> expected;
  const bool is_gem = options.kind == StrategyKind::kGem;
  for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
    const std::size_t k = worker_of(turn);
    std::vector<float> change(kWeights);
    for (std::size_t i = 0; i < kWeights; ++i) {
      change[i] = change_of(turn, i, static_cast<double>(made.worker[k][i]));
      formula(expected, k, i, static_cast<double>(change[i]));
    }
    using Span = std::span<float>;
    update_in_turn(options, 1, change,
                   {made.centre, made.worker[k], is_gem ? Span(made.moment[k]) : Span(),
                    is_gem ? Span(made.stale[k]) : Span()});
    for (std::size_t i = 0; i < kWeights; ++i) {
      EXPECT_NEAR(made.centre[i], expected.centre[i], 2e-5) << "turn " << turn;
      EXPECT_NEAR(made.worker[k][i], expected.worker[k][i], 2e-5) << "turn " << turn;
    }
  }
  for (std::size_t i = 0; i < kWeights; ++i) {
    EXPECT_NEAR(made.centre[i], 1.0, 0.2) << "it goes down the bowl";
  }
}

TEST(TurnUpdate, DownpourSubtractsWhatTheWorkerDidAndTheWorkerTakesTheCentre) {
  auto options = of(StrategyKind::kDownpour);
  options.rate = 0.8;
  expect_turns(options, [](System<double>& all, std::size_t k, std::size_t i, double d) {
    all.centre[i] -= 0.8 * d;
    all.worker[k][i] = all.centre[i];
  });
}

TEST(TurnUpdate, EasgdPullsWorkerAndCentreTogetherByTheSameForce) {
  auto options = of(StrategyKind::kEasgd);
  options.rho = 0.3;
  expect_turns(options, [](System<double>& all, std::size_t k, std::size_t i, double d) {
    const double x = all.worker[k][i] - d, w = all.centre[i];
    all.worker[k][i] = x - 0.3 * (x - w);
    all.centre[i] = w + 0.3 * (x - w);
  });
}

// Turns of 2 workers and of the third alone, by the sum over each.
TEST(TurnUpdate, QuorumSubtractsTheMeanAndLessWhereFewerAreLeft) {
  auto options = of(StrategyKind::kQuorum);
  options.of = 2;
  options.rate = 0.6;
  std::vector<float> centre(kWeights, 1.0f);
  std::vector<double> expected(kWeights, 1.0);
  for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
    const std::uint32_t workers = options.at_a_time(turn % 2);
    EXPECT_EQ(workers, turn % 2 == 0 ? 2u : 1u);
    std::vector<float> mean(kWeights), worker(kWeights);
    for (std::size_t i = 0; i < kWeights; ++i) {
      double sum = 0.0;
      for (std::uint32_t k = 0; k < workers; ++k) {
        sum += static_cast<double>(change_of(2 * turn + k, i, static_cast<double>(centre[i])));
      }
      mean[i] = static_cast<float>(sum / workers);
      expected[i] -= 0.6 / 2 * sum;
    }
    update_in_turn(options, workers, mean, {centre, worker, {}, {}});
    EXPECT_EQ(worker, centre);
    for (std::size_t i = 0; i < kWeights; ++i) {
      EXPECT_NEAR(centre[i], expected[i], 2e-5) << "turn " << turn;
    }
  }
}

TEST(TurnUpdate, GemMovesTheCentreByWhatItsProxyHasBeforeTheOthersDid) {
  auto options = of(StrategyKind::kGem);
  options.momentum = 0.6;
  options.kappa = 1.2;
  expect_turns(options, [](System<double>& all, std::size_t k, std::size_t i, double d) {
    double &m = all.moment[k][i], &w = all.centre[i], &s = all.stale[k][i];
    m = 0.6 * m - d;
    const double c = w - s;
    s = w;
    const double pi =
        std::min(5.0, std::max(0.0, (1.2 * std::abs(m) - std::abs(c)) / std::abs(-d + 1e-12)));
    w -= pi * d;
    all.worker[k][i] = w;
  });
}

TEST(TurnUpdate, GemLetsAWorkerMoveNothingWhereTheOthersHaveMovedMore) {
  const auto options = of(StrategyKind::kGem);
  std::vector<float> centre{2.0f, 2.0f}, worker{1.0f, 2.0f}, moment(2), stale{1.0f, 2.0f};
  update_in_turn(options, 1, std::vector<float>{0.1f, 0.1f}, {centre, worker, moment, stale});
  EXPECT_EQ(centre[0], 2.0f) << "others have moved it by 1";
  EXPECT_NEAR(centre[1], 1.9f, 1e-6) << "nobody has moved it";
  EXPECT_EQ(worker, centre);
  EXPECT_EQ(stale, (std::vector<float>{2.0f, 2.0f}));
}

TEST(TurnUpdate, MovingStatisticsOfTheCentreAreAMeanOfTheWorkers) {
  const std::vector<float> after{4.0f};
  std::vector<float> centre{1.0f}, worker{9.0f};
  update_moving_in_turn(of(StrategyKind::kDownpour), 1, after, centre, worker);
  EXPECT_FLOAT_EQ(centre[0], 2.0f);
  EXPECT_EQ(worker[0], centre[0]) << "taken with the weights";
  auto quorum = of(StrategyKind::kQuorum);
  quorum.of = 2;
  centre = {1.0f};
  update_moving_in_turn(quorum, 2, after, centre, worker);
  EXPECT_FLOAT_EQ(centre[0], 3.0f) << "two of the three are in it";
  centre = {1.0f};
  auto easgd = of(StrategyKind::kEasgd);
  easgd.rho = 0.5;
  update_moving_in_turn(easgd, 1, after, centre, worker);
  EXPECT_FLOAT_EQ(centre[0], 2.5f);
  EXPECT_EQ(worker[0], 4.0f) << "it keeps its own";
}

TEST(NextTurn, IsSaidByAHeaderThatNamesAsManyWorkersAsItTakesAndNoneThatHadItsTurn) {
  TrainingOptions options;
  options.strategy = of(StrategyKind::kQuorum);
  options.strategy.workers = 4;
  options.strategy.of = 2;
  options.worker.emplace();
  options.schedule = {2, model::SlotKind::kWorkers};
  TrainingState state;
  state.turns.emplace().workers.resize(4);
  state.turns->next.add(1);
  state.turns->next.add(2);
  const auto says = [&](std::vector<TurnOffer> next) {
    StepHeader header;
    header.step = state.step(2);
    header.next = std::move(next);
    return says_next_turn(header, options, state);
  };
  EXPECT_TRUE(says({{0, 0}, {0, 3}}));
  EXPECT_FALSE(says({}));
  EXPECT_FALSE(says({{0, 0}}));
  EXPECT_FALSE(says({{0, 0}, {0, 4}})) << "there is no such worker";
  EXPECT_FALSE(says({{0, 0}, {0, 1}})) << "its turn is now";
  state.slot = 1;
  state.turns->workers[0].turns = state.turns->workers[3].turns = 1;
  EXPECT_TRUE(says({{0, 1}, {5, 3}})) << "in the next iteration all have a turn";
  state.turns->workers[3].turns = 2;
  EXPECT_FALSE(says({{0, 1}, {5, 3}})) << "it would be two ahead";
  options.worker.reset();
  EXPECT_TRUE(says({})) << "there are no turns";
}

}  // namespace
}  // namespace troupe::pipeline
