#include "pipeline/scaling/outlook.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace troupe::pipeline {
namespace {

using Nodes = std::vector<std::uint32_t>;

// `share`: 1.1 for workers that are a tenth faster.
BurstFacts with_pace(BurstFacts facts, double share, double line) {
  facts.others.speed *= share;
  for (PoolOffer& pool : facts.pools) pool.speed *= share;
  facts.unexplained /= share;
  facts.unexplained_speed *= share;
  facts.line.member_bytes_per_second *= share;
  facts.line.bytes_per_second *= line;
  facts.line.message_seconds /= line;
  return facts;
}

OutlookLine line_of(const BurstFacts& facts, const BurstLimits& limits, const Doubt& doubt,
                    const Nodes& nodes) {
  OutlookLine line;
  line.forecast = forecast(facts, limits, nodes);
  line.nodes = nodes_text(facts, nodes);
  line.workers = facts.others.workers;
  double speed = facts.others.workers * facts.others.speed;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    line.workers += nodes[i] * facts.pools[i].workers;
    speed += nodes[i] * facts.pools[i].workers * facts.pools[i].speed;
  }
  line.iterations_per_second = 1.0 / iteration_seconds(facts, nodes);
  line.efficiency = std::numeric_limits<double>::quiet_NaN();
  if (line.forecast.lasts) {
    line.efficiency =
        facts.iterations_left * facts.work.micro_batches / speed / line.forecast.seconds;
  }
  line.at_best = forecast(with_pace(facts, 1.0 + doubt.pace, doubt.line), limits, nodes);
  line.at_worst = forecast(with_pace(facts, 1.0 - doubt.pace, 1.0 / doubt.line), limits, nodes);
  return line;
}

// Each pool by itself: 1, 2, 4 nodes and so on, and its most.
std::set<Nodes> pools_alone(const BurstFacts& facts) {
  std::set<Nodes> all;
  for (std::size_t i = 0; i < facts.pools.size(); ++i) {
    const std::uint32_t most = facts.pools[i].most;
    for (std::uint32_t count = 1; count <= most; ++count) {
      if (!std::has_single_bit(count) && count != most) continue;
      Nodes nodes(facts.pools.size(), 0);
      nodes[i] = count;
      all.insert(std::move(nodes));
    }
  }
  return all;
}

// With a deadline or a budget: what the run would do when it begins.
void recommend_within(const BurstFacts& facts, const BurstLimits& limits, Outlook& outlook) {
  const BurstDecision decision = decide(facts, limits);
  outlook.reason = decision.reason;
  for (OutlookLine& line : outlook.lines) {
    line.is_recommended = !decision.must_end && line.forecast.nodes == decision.forecast.nodes;
  }
}

void recommend_without(Outlook& outlook) {
  const auto rank = [](const OutlookLine& line) {
    const bool is_worth_it = line.efficiency >= kWorthHaving;
    return std::tuple(!is_worth_it, is_worth_it ? line.forecast.seconds : -line.efficiency);
  };
  OutlookLine& best = *std::ranges::min_element(outlook.lines, {}, rank);
  best.is_recommended = true;
  outlook.reason =
      best.efficiency >= kWorthHaving
          ? fmt::format("the fastest of those with an efficiency of {:.0f} % at least",
                        100.0 * kWorthHaving)
          : fmt::format("none has an efficiency of {:.0f} %, and this one has the best",
                        100.0 * kWorthHaving);
}

// Without a node, with 1, 2, 4 nodes and so on, with full pools, and what is best at something.
bool is_worth_showing(const BurstFacts& facts, const OutlookLine& line) {
  const Nodes& nodes = line.forecast.nodes;
  const std::uint32_t all = std::accumulate(nodes.begin(), nodes.end(), 0U);
  bool are_full = true;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    are_full = are_full && (nodes[i] == 0 || nodes[i] == facts.pools[i].most);
  }
  return line.is_cheapest || line.is_fastest || line.is_recommended || are_full ||
         std::has_single_bit(all);
}

}  // namespace

Outlook outlook(const BurstFacts& facts, const std::optional<BurstLimits>& limits,
                const Doubt& doubt) {
  std::set<Nodes> all = pools_alone(facts);
  for (const Nodes& nodes : worth_a_look(facts)) all.insert(nodes);
  Outlook outlook;
  for (const Nodes& nodes : all) {
    OutlookLine line = line_of(facts, limits.value_or(BurstLimits{}), doubt, nodes);
    if (std::isfinite(line.forecast.seconds)) outlook.lines.push_back(std::move(line));
  }
  if (limits) {
    recommend_within(facts, *limits, outlook);
  } else if (!outlook.lines.empty()) {
    recommend_without(outlook);
  }
  const auto seconds = [](const OutlookLine& line) { return line.forecast.seconds; };
  if (!outlook.lines.empty()) {
    std::ranges::min_element(outlook.lines, {}, seconds)->is_fastest = true;
    const auto by_cost = [](const OutlookLine& line) {
      return std::pair(line.forecast.cost, line.forecast.seconds);
    };
    std::ranges::min_element(outlook.lines, {}, by_cost)->is_cheapest = true;
  }
  std::erase_if(outlook.lines, [&](const auto& line) { return !is_worth_showing(facts, line); });
  std::ranges::stable_sort(outlook.lines, std::ranges::greater{}, seconds);
  return outlook;
}

}  // namespace troupe::pipeline
