#include "pipeline/scaling/outlook.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/pipeline/burst_example.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Nodes = std::vector<std::uint32_t>;

const OutlookLine* find(const Outlook& told, const Nodes& nodes) {
  const auto found = std::ranges::find_if(
      told.lines, [&](const OutlookLine& line) { return line.forecast.nodes == nodes; });
  return found == told.lines.end() ? nullptr : &*found;
}

std::vector<Nodes> marked(const Outlook& told, bool OutlookLine::*mark) {
  std::vector<Nodes> all;
  for (const OutlookLine& line : told.lines) {
    if (line.*mark) all.push_back(line.forecast.nodes);
  }
  return all;
}

TEST(Outlook, TellsOfTimeCostAndEfficiency) {
  const Outlook told = outlook(facts_of({pool_of("hpc", 3, 2.0)}), {}, {});
  ASSERT_EQ(told.lines.size(), 4);
  const OutlookLine& alone = told.lines.front();
  EXPECT_EQ(alone.nodes, "no nodes");
  EXPECT_EQ(alone.workers, 1);
  EXPECT_DOUBLE_EQ(alone.forecast.seconds, 64 * kHour);
  EXPECT_DOUBLE_EQ(alone.iterations_per_second, 1.0 / 64);
  EXPECT_DOUBLE_EQ(alone.efficiency, 1.0);
  EXPECT_EQ(alone.forecast.cost, 0.0);
  const OutlookLine& all = told.lines.back();
  EXPECT_EQ(all.nodes, "3 of hpc");
  EXPECT_EQ(all.workers, 4);
  EXPECT_DOUBLE_EQ(all.forecast.seconds, 16 * kHour);
  EXPECT_NEAR(all.forecast.cost, 3 * 16 * 2.0, 1e-9);
  EXPECT_THAT(marked(told, &OutlookLine::is_cheapest), ElementsAre(Nodes{0}));
  EXPECT_THAT(marked(told, &OutlookLine::is_fastest), ElementsAre(Nodes{3}));
  EXPECT_THAT(marked(told, &OutlookLine::is_recommended), ElementsAre(Nodes{3}));
}

// With 48 workers an iteration takes as long as with 32.
TEST(Outlook, RecommendsNoNodesThatAreOfNoUse) {
  const Outlook told = outlook(facts_of({pool_of("hpc", 47, 2.0)}), {}, {});
  EXPECT_THAT(marked(told, &OutlookLine::is_recommended), ElementsAre(Nodes{31}));
  EXPECT_NEAR(find(told, {47})->efficiency, 2.0 / 3, 1e-3);
  EXPECT_THAT(told.reason, HasSubstr("80 %"));
}

// Nodes that come when the run is nearly over waste their time.
TEST(Outlook, CountsTheTimeInWhichNodesStart) {
  PoolOffer slow = pool_of("slow", 1, 1.0);
  slow.starts_in = 60 * kHour;
  const Outlook told = outlook(facts_of({slow}), {}, {});
  EXPECT_THAT(marked(told, &OutlookLine::is_recommended), ElementsAre(Nodes{0}));
  EXPECT_NEAR(find(told, {1})->efficiency, 64.0 / (2 * 62.0), 1e-3);
}

TEST(Outlook, TellsOfEachPoolAndOfThoseFilledOneAfterTheOther) {
  const Outlook told =
      outlook(facts_of({pool_of("dear", 2, 4.0), pool_of("cheap", 3, 1.0)}, 0), {}, {});
  for (const Nodes& nodes : {Nodes{1, 0}, {2, 0}, {0, 1}, {0, 2}, {0, 3}, {2, 3}}) {
    EXPECT_NE(find(told, nodes), nullptr) << nodes[0] << " and " << nodes[1];
  }
  EXPECT_EQ(find(told, {0, 0}), nullptr) << "without a worker a run does not end";
  EXPECT_EQ(find(told, {2, 3})->nodes, "2 of dear, 3 of cheap");
}

TEST(Outlook, DoubtMakesTheRunSlowerAndDearerOrNot) {
  BurstFacts facts = facts_of({pool_of("hpc", 1, 1.0)});
  facts.unexplained = 8.0;
  const Outlook told = outlook(facts, {}, {.pace = 0.2});
  const OutlookLine& both = told.lines.back();
  EXPECT_DOUBLE_EQ(both.forecast.seconds, 40 * kHour);
  EXPECT_DOUBLE_EQ(both.at_best.seconds, 40 * kHour / 1.2);
  EXPECT_DOUBLE_EQ(both.at_worst.seconds, 40 * kHour / 0.8);
  EXPECT_LT(both.at_best.cost, both.forecast.cost);
  EXPECT_GT(both.at_worst.cost, both.forecast.cost);
}

TEST(Outlook, WithLimitsRecommendsWhatTheRunWouldDo) {
  const BurstFacts facts = facts_of({pool_of("hpc", 63, 1.0)});
  const BurstLimits limits{.finish_within = 10 * kHour};
  const Outlook told = outlook(facts, limits, {});
  EXPECT_THAT(marked(told, &OutlookLine::is_recommended),
              ElementsAre(decide(facts, limits).forecast.nodes));
  EXPECT_THAT(told.reason, HasSubstr("7 of hpc: the run ends in"));
}

TEST(Outlook, RecommendsNothingThatTheBudgetDoesNotPay) {
  const BurstFacts facts = facts_of({pool_of("hpc", 4, 100.0)}, 0);
  const Outlook told = outlook(facts, BurstLimits{.budget = 1.0}, {});
  EXPECT_THAT(marked(told, &OutlookLine::is_recommended), IsEmpty());
  EXPECT_THAT(told.reason, HasSubstr("too little for a node"));
}

// Without a node nothing is made, so a node is worth having as long as the budget lasts.
TEST(Outlook, RecommendsTheMostThatABudgetMakesOfARunThatItCannotEnd) {
  const BurstFacts facts = facts_of({pool_of("hpc", 4, 360.0)}, 0);
  const BurstLimits limits{.budget = 30.0};
  EXPECT_THAT(decide(facts, limits).forecast.nodes, ElementsAre(1));
  EXPECT_EQ(forecast(facts, limits, {0}).made, 0.0);
  const Outlook told = outlook(facts, limits, {});
  EXPECT_THAT(told.lines, IsEmpty());
  EXPECT_THAT(told.reason, HasSubstr("1 of hpc: the run cannot end"));
}

TEST(Outlook, TellsOfNoEfficiencyWhereTheBudgetDoesNotLast) {
  const Outlook told =
      outlook(facts_of({pool_of("hpc", 63, 100.0)}), BurstLimits{.budget = 300.0}, {});
  ASSERT_NE(find(told, {63}), nullptr);
  EXPECT_FALSE(find(told, {63})->forecast.lasts);
  EXPECT_TRUE(std::isnan(find(told, {63})->efficiency));
}

}  // namespace
}  // namespace troupe::pipeline
