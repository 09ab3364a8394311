#include "pipeline/scaling/burst.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/pipeline/burst_example.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Nodes = std::vector<std::uint32_t>;

PoolOffer cloud(double price = 1.0) {
  PoolOffer pool = pool_of("cloud", 63, price);
  pool.starts_in = 60.0;
  return pool;
}

TEST(Burst, ForecastsTimeAndCost) {
  BurstFacts facts = facts_of({cloud()});
  const BurstForecast alone = forecast(facts, {});
  EXPECT_DOUBLE_EQ(alone.seconds, 64 * kHour);
  EXPECT_EQ(alone.cost, 0.0);
  // For a minute one worker goes on alone, and makes an iteration less than one.
  const BurstForecast both = forecast(facts, {}, {1});
  EXPECT_NEAR(both.seconds, 32 * kHour + 30.0, 1.0);
  EXPECT_NEAR(both.cost, both.seconds / kHour, 1e-9);
  facts.pools[0].running = 1;
  EXPECT_NEAR(forecast(facts, {}, {1}).seconds, 32 * kHour, 1e-6);
}

// Until all are measured and shared out by speed, the slow node has half of the micro-batches.
TEST(Burst, CountsTheTimeInWhichNewNodesHaveTheShareOfTheMean) {
  BurstFacts facts = facts_of({pool_of("slow", 1, 1.0, 1.0 / 3.0)});
  EXPECT_DOUBLE_EQ(forecast(facts, {}, {1}).seconds, 3591 * 48.0 + 9 * 96.0);
  facts.pools[0].running = 1;
  EXPECT_DOUBLE_EQ(forecast(facts, {}, {1}).seconds, 3600 * 48.0);
  // Without others: a quick node and a slow one come together.
  facts = facts_of({pool_of("quick", 1, 1.0), pool_of("slow", 1, 1.0, 1.0 / 3.0)}, 0);
  EXPECT_DOUBLE_EQ(forecast(facts, {}, {1, 1}).seconds, 3591 * 48.0 + 9 * 96.0);
  // The quick one trains, and the slow one has the same share as it at first.
  facts.pools[0].running = 1;
  EXPECT_DOUBLE_EQ(forecast(facts, {}, {1, 1}).seconds, 3591 * 48.0 + 9 * 96.0);
  facts.work.by_speed = false;
  EXPECT_DOUBLE_EQ(forecast(facts, {}, {1, 1}).seconds, 3600 * 96.0);
  // Quick iterations are shared out after some seconds.
  facts = facts_of({pool_of("slow", 1, 1.0, 1.0 / 3.0)});
  facts.work.micro_batches = 2;
  facts.others.speed = 2.0;
  facts.pools[0].speed = 1.0;
  EXPECT_DOUBLE_EQ(forecast(facts, {}, {1}).seconds, 3600 * 1.0);
}

TEST(Burst, CountsThatSlowMembersTakeLongerForWhatEachDoesByItself) {
  BurstFacts facts = facts_of({pool_of("quick", 1, 1.0), pool_of("slow", 1, 1.0, 1.0 / 3.0)});
  facts.unexplained = 2.0;
  EXPECT_DOUBLE_EQ(iteration_seconds(facts, {0, 1}), 48.0 + 2.0) << "of any speed";
  facts.unexplained_speed = 1.0;
  EXPECT_DOUBLE_EQ(iteration_seconds(facts, {1, 0}), 32.0 + 2.0);
  EXPECT_DOUBLE_EQ(iteration_seconds(facts, {0, 1}), 48.0 + 6.0);
  facts.unexplained_speed = 1.0 / 3.0;
  EXPECT_DOUBLE_EQ(iteration_seconds(facts, {1, 0}), 32.0 + 2.0) << "it may be waiting, too";
}

TEST(Burst, CountsThatSlowMembersTakeLongerForSums) {
  BurstFacts facts = facts_of({pool_of("quick", 1, 1.0), pool_of("slow", 1, 1.0, 1.0 / 3.0)});
  facts.unexplained_speed = 1.0;
  facts.work.step_bytes = {3e9};
  facts.line.message_seconds = 0.0;
  facts.line.bytes_per_second = 1e10;
  facts.line.member_bytes_per_second = 1e9;
  EXPECT_DOUBLE_EQ(iteration_seconds(facts, {1, 0}), 32.0 + 3.0);
  EXPECT_DOUBLE_EQ(iteration_seconds(facts, {0, 1}), 48.0 + 9.0);
}

TEST(Burst, WithoutAWorkerARunDoesNotEnd) {
  const BurstFacts facts = facts_of({cloud()}, 0);
  EXPECT_TRUE(std::isinf(forecast(facts, {}, {0}).seconds));
  const BurstDecision decision = decide(facts, {.finish_within = 100 * kHour});
  EXPECT_THAT(decision.forecast.nodes, ElementsAre(1));
}

TEST(Burst, TakesAsManyNodesAsTheDeadlineNeeds) {
  // Nine hours of ten: 7.1 workers would do, and 64 micro-batches are shared out evenly by 8.
  const BurstDecision decision = decide(facts_of({cloud()}), {.finish_within = 10 * kHour});
  EXPECT_THAT(decision.forecast.nodes, ElementsAre(7));
  EXPECT_TRUE(decision.changes);
  EXPECT_EQ(decision.reason,
            "7 of cloud: the run ends in 8 h 1 min of 10 h 0 min that are left, for 56.10");
}

TEST(Burst, NeedsNoNodesWhereThereIsTimeEnough) {
  const BurstDecision decision = decide(facts_of({cloud()}), {.finish_within = 80 * kHour});
  EXPECT_THAT(decision.forecast.nodes, ElementsAre(0));
  EXPECT_FALSE(decision.changes);
}

TEST(Burst, TakesTheCheaperPoolFirst) {
  PoolOffer dear = cloud(3.0), cheap = cloud(1.0), quick = cloud(1.5);
  dear.name = "dear";
  cheap.most = 3;
  quick.name = "quick";
  quick.speed = 2.0;
  quick.most = 2;
  const BurstDecision decision =
      decide(facts_of({dear, cheap, quick}), {.finish_within = 9 * kHour});
  // Quick nodes cost 0.75 for the work of one, and there are two of them.
  EXPECT_THAT(decision.forecast.nodes, ElementsAre(0, 3, 2));
}

TEST(Burst, WhatCannotBeInTimeIsAsQuickAsItCan) {
  PoolOffer few = cloud();
  few.most = 3;
  const BurstDecision decision = decide(facts_of({few}), {.finish_within = 10 * kHour});
  EXPECT_THAT(decision.forecast.nodes, ElementsAre(3));
  EXPECT_THAT(decision.reason, HasSubstr("that are left, which is too late"));
  EXPECT_TRUE(decision.is_too_late);
  EXPECT_FALSE(decision.is_in_time);
}

TEST(Burst, TellsWhetherTheDeadlineIsKeptAlsoWhereNothingChanges) {
  BurstFacts facts = facts_of({cloud()});
  facts.pools[0].most = facts.pools[0].wanted = facts.pools[0].running = 7;
  const auto told = [&](double hours) {
    const BurstDecision decision = decide(facts, {.finish_within = hours * kHour});
    EXPECT_FALSE(decision.changes) << hours;
    return std::pair(decision.is_too_late, decision.is_in_time);
  };
  EXPECT_EQ(told(7.0), std::pair(true, false));
  EXPECT_EQ(told(8.2), std::pair(false, false)) << "eight hours, which is close";
  EXPECT_EQ(told(8.8), std::pair(false, true));
  const BurstDecision free = decide(facts, {.budget = 1000.0});
  EXPECT_FALSE(free.is_too_late || free.is_in_time);
}

TEST(Burst, ReasonsHaveTheDigitsOfSmallSums) {
  const BurstDecision decision =
      decide(facts_of({cloud(0.0001)}), {.finish_within = 10 * kHour, .budget = 0.05});
  EXPECT_THAT(decision.reason, HasSubstr(", for 0.0056 of 0.050"));
}

TEST(Burst, WithABudgetAloneIsAsQuickAsThatAllows) {
  // 63 nodes would cost 63 and their time to start and to end.
  const BurstDecision rich = decide(facts_of({cloud()}), {.budget = 100.0});
  EXPECT_THAT(rich.forecast.nodes, ElementsAre(63));
  EXPECT_TRUE(rich.forecast.lasts);
  const BurstDecision poor = decide(facts_of({cloud()}), {.budget = 20.0});
  EXPECT_FALSE(poor.forecast.lasts);
  EXPECT_LE(poor.forecast.cost, 20.0);
  EXPECT_LT(poor.forecast.seconds, 64 * kHour);
  EXPECT_THAT(poor.reason, HasSubstr("the budget does not last to the end"));
}

TEST(Burst, KeepsNodesThatAreNearlyRight) {
  BurstFacts facts = facts_of({cloud()});
  facts.pools[0].wanted = facts.pools[0].running = facts.pools[0].costing = 7;
  const BurstLimits limits{.finish_within = 10 * kHour};
  EXPECT_FALSE(decide(facts, limits).changes);
  // Later than was aimed at, and still in time.
  facts.elapsed = 1.5 * kHour;
  EXPECT_FALSE(decide(facts, limits).changes);
  facts.elapsed = 2.5 * kHour;
  EXPECT_TRUE(decide(facts, limits).changes);
  // Half the nodes do.
  facts.elapsed = 0.0;
  facts.iterations_left = 1800;
  const BurstDecision less = decide(facts, limits);
  EXPECT_THAT(less.forecast.nodes, ElementsAre(testing::Lt(5U)));
}

// A budget that is nearly spent keeps nodes that are quickly gone, and none that may take long.
TEST(Burst, ReservesTheTimeInWhichNodesAreGivenBack) {
  BurstFacts facts = facts_of({cloud(3600.0)});
  facts.pools[0].wanted = facts.pools[0].running = facts.pools[0].costing = 2;
  facts.iterations_left = 0.5;
  const BurstLimits limits{.budget = 200.0, .decide_every = 5.0};
  EXPECT_THAT(decide(facts, limits).forecast.nodes, ElementsAre(0));
  facts.pools[0].stops_in = 10.0;
  EXPECT_THAT(decide(facts, limits).forecast.nodes, ElementsAre(2));
}

// None of these is in time with a tenth to spare. Two nodes less are nearly as quick and cheaper,
// and would leave no time at all.
TEST(Burst, GivesNothingBackThatALateRunNeeds) {
  BurstFacts facts = facts_of({pool_of("cloud", 5, 36.0)});
  facts.pools[0].wanted = facts.pools[0].running = facts.pools[0].costing = 5;
  facts.work.micro_batches = 640;
  facts.iterations_left = 1.0;
  facts.unexplained = 4000.0;
  const BurstLimits limits{.finish_within = 4165.0};
  ASSERT_LE(forecast(facts, limits, {3}).seconds, 1.02 * forecast(facts, limits, {5}).seconds);
  ASSERT_LE(forecast(facts, limits, {3}).seconds, 4165.0);
  EXPECT_THAT(decide(facts, limits).forecast.nodes, ElementsAre(5));
}

TEST(Burst, CountsNodesThatAreLostNowAndThen) {
  PoolOffer spot = cloud();
  spot.losses_per_hour = 6.0;
  spot.starts_in = 600.0;
  const BurstForecast lossy = forecast(facts_of({spot}), {}, {3});
  const BurstForecast steady = forecast(facts_of({cloud()}), {}, {3});
  EXPECT_GT(lossy.seconds, 1.3 * steady.seconds);
}

TEST(Burst, EndsARunThatHasNeitherMoneyNorWorkers) {
  BurstFacts facts = facts_of({cloud()}, 0);
  facts.spent = 9.99;
  facts.pools[0].wanted = facts.pools[0].running = facts.pools[0].costing = 1;
  const BurstDecision decision = decide(facts, {.budget = 10.0});
  EXPECT_TRUE(decision.must_end);
  EXPECT_THAT(decision.reason, HasSubstr("9.99 of 10.00 are spent"));
  facts.others = {1, 1.0};
  EXPECT_THAT(decide(facts, {.budget = 10.0}).forecast.nodes, ElementsAre(0));
  // A minute of a node could be paid, and not the two in which it is given back.
  facts.spent = 9.96;
  facts.pools[0].wanted = facts.pools[0].running = facts.pools[0].costing = 0;
  EXPECT_THAT(decide(facts, {.budget = 10.0}).forecast.nodes, ElementsAre(0));
  facts.spent = 9.94;
  EXPECT_THAT(decide(facts, {.budget = 10.0}).forecast.nodes, ElementsAre(testing::Le(1U)));
}

// 63 nodes are too many for 64 micro-batches of two workers each, so that money is wasted on half
// of them.
TEST(Burst, MakesTheMostOfABudgetThatCannotPayForTheRun) {
  PoolOffer pool = cloud();
  pool.workers = 2;
  const BurstDecision decision = decide(facts_of({pool}, 0), {.budget = 10.0});
  EXPECT_TRUE(std::isinf(decision.forecast.seconds));
  EXPECT_LE(decision.forecast.nodes.front(), 32U);
  for (const Nodes& nodes : worth_a_look(facts_of({pool}, 0))) {
    if (nodes.front() == 0) continue;
    const double made = forecast(facts_of({pool}, 0), {.budget = 10.0}, nodes).made;
    EXPECT_LE(made, decision.forecast.made) << nodes.front();
  }
}

TEST(Burst, WantsNoNodesForARunThatIsMade) {
  BurstFacts facts = facts_of({cloud()});
  facts.iterations_left = 0;
  facts.pools[0].wanted = facts.pools[0].costing = 5;
  EXPECT_THAT(decide(facts, {.finish_within = kHour}).forecast.nodes, ElementsAre(0));
  facts.others.workers = 0;
  EXPECT_EQ(forecast(facts, {}, {0}).seconds, 0.0);
}

TEST(Burst, BeforeAnythingIsMeasuredNodesGoOnlyForTheBudget) {
  BurstFacts facts = facts_of({cloud()}, 0);
  facts.measured = false;
  EXPECT_THAT(decide(facts, {.budget = 10.0}).forecast.nodes, ElementsAre(1));
  facts.pools[0].wanted = 40;
  EXPECT_FALSE(decide(facts, {.budget = 10.0}).changes);
  // Ten nodes cost a sixth and a third until they could be given back.
  const BurstDecision poor = decide(facts, {.budget = 0.5});
  EXPECT_THAT(poor.forecast.nodes, ElementsAre(10));
  EXPECT_FALSE(poor.must_end);
  EXPECT_TRUE(decide(facts, {.budget = 0.01}).must_end);
}

// Plays a run whose nodes start and end late, are lost, and compute at another speed than was
// thought, with decisions every minute.
class Economy {
 public:
  explicit Economy(std::uint64_t seed) : random_(seed), goes_late_(seed % 2 == 0) {
    facts_ = facts_of({}, draw(0, 2));
    facts_.iterations_left = draw(200, 4000);
    for (std::uint32_t i = 0, count = draw(1, 3); i < count; ++i) {
      PoolOffer pool = cloud(0.1 * draw(1, 50));
      pool.name = std::to_string(i);
      pool.most = draw(1, 40);
      pool.workers = draw(1, 4);
      pool.starts_in = draw(5, 900);
      pool.losses_per_hour = draw(0, 3);
      facts_.pools.push_back(pool);
      nodes_.emplace_back();
    }
    if (draw(0, 1) == 1) limits_.finish_within = kHour * draw(1, 20);
    if (!limits_.finish_within || draw(0, 2) > 0) limits_.budget = draw(1, 60);
  }

  void play() {
    for (int minute = 0; minute < 60 * 40 && facts_.iterations_left > 0.0; ++minute) {
      const BurstDecision decision = decide(facts_, limits_);
      if (decision.must_end) break;
      changes += decision.changes ? 1 : 0;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        facts_.pools[i].wanted = decision.forecast.nodes[i];
      }
      for (int second = 0; second < 60; ++second) pass_a_second();
    }
    // The run is over, and nodes take their time to go.
    for (auto& pool : nodes_) {
      for (const Node& node : pool) spend(node, node.leaves_in < 0 ? leaving() : node.leaves_in);
    }
  }

  double spent() const { return facts_.spent; }
  const BurstLimits& limits() const { return limits_; }
  int changes = 0;

 private:
  struct Node {
    std::size_t pool;
    int starts_in;
    int leaves_in = -1;       // below 0: it stays
    double given_back = 0.0;  // seconds ago
  };
  std::uint32_t draw(std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random_);
  }
  // Seconds from the decision on, within what the pools say.
  int leaving() { return goes_late_ ? 119 : int(draw(1, 119)); }
  void spend(const Node& node, double seconds) {
    facts_.spent += seconds * facts_.pools[node.pool].price / kHour;
  }
  void pass_a_second() {
    double workers = facts_.others.workers;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      PoolOffer& pool = facts_.pools[i];
      auto& nodes = nodes_[i];
      std::uint32_t staying = 0;
      for (Node& node : nodes) {
        staying += node.leaves_in < 0 ? 1 : 0;
        if (node.leaves_in < 0 && staying > pool.wanted) node.leaves_in = leaving();
      }
      const auto room =
          std::min<std::uint32_t>(pool.wanted, pool.most - std::uint32_t(nodes.size()) + staying);
      for (; staying < room; ++staying) nodes.push_back({i, int(draw(1, 2 * int(pool.starts_in)))});
      for (Node& node : nodes) {
        spend(node, 1.0);
        --node.starts_in;
        if (node.leaves_in >= 0) {
          --node.leaves_in;
          node.given_back += 1.0;
        }
        const bool works = node.starts_in < 0 && node.leaves_in < 0;
        workers += works ? 0.7 * pool.workers : 0;
        if (draw(1, 3600) <= pool.losses_per_hour) node.leaves_in = 0;
      }
      std::erase_if(nodes, [](const Node& node) { return node.leaves_in == 0; });
      pool.costing = 0;
      pool.leaving_seconds = 0.0;
      for (const Node& node : nodes) {
        pool.costing += node.leaves_in < 0 ? 1 : 0;
        if (node.leaves_in >= 0) pool.leaving_seconds += pool.stops_in - node.given_back;
      }
      pool.running = std::uint32_t(std::ranges::count_if(
          nodes, [](const Node& node) { return node.starts_in < 0 && node.leaves_in < 0; }));
    }
    facts_.iterations_left -= workers / 64.0;
    facts_.elapsed += 1.0;
  }

  std::mt19937_64 random_;
  const bool goes_late_;
  BurstFacts facts_;
  BurstLimits limits_;
  std::vector<std::vector<Node>> nodes_;
};

TEST(Burst, NeverExceedsTheBudgetNorChangesItsMindAllTheTime) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Economy economy(seed);
    economy.play();
    EXPECT_LE(economy.spent(), economy.limits().budget.value_or(1e9)) << seed;
    EXPECT_LE(economy.changes, 200) << seed;
  }
}

TEST(Burst, ToldTimesAreShort) {
  EXPECT_EQ(time_text(42), "42 s");
  EXPECT_EQ(time_text(240), "4 min");
  EXPECT_EQ(time_text(3.2 * kHour), "3 h 12 min");
  EXPECT_EQ(time_text(INFINITY), "never");
}

}  // namespace
}  // namespace troupe::pipeline
