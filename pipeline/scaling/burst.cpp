#include "pipeline/scaling/burst.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/amount_text.h"

namespace troupe::pipeline {
namespace {

using runtime::amount_text;
using Nodes = std::vector<std::uint32_t>;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSpare = 0.9;        // a deadline is aimed at so early,
constexpr double kLeastSpare = 0.95;  // and a run that would end later than so is made quicker
constexpr double kWorthwhile = 0.9;   // a change has to bring the cost or the time to so much
constexpr double kNearlyAsGood = 1.02;

// A node that is lost is away until another one has started.
double share_of_time(const PoolOffer& pool) {
  return 1.0 / (1.0 + pool.losses_per_hour * pool.starts_in / 3600.0);
}

double cost_per_second(const BurstFacts& facts, const Nodes& nodes) {
  double cost = 0.0;
  for (std::size_t i = 0; i < nodes.size(); ++i) cost += nodes[i] * facts.pools[i].price / 3600.0;
  return cost;
}

// A time in which iterations take so long.
struct Stretch {
  double seconds = 0.0;
  double of_iteration = kNever;
  double iterations() const { return seconds / of_iteration; }
};
using Phases = std::vector<Stretch>;  // the last has no end

double seconds_for(double iterations, const Phases& phases) {
  if (iterations <= 0.0) return 0.0;
  double seconds = 0.0;
  for (const Stretch& phase : phases) {
    if (phase.iterations() >= iterations) return seconds + iterations * phase.of_iteration;
    seconds += phase.seconds;
    iterations -= phase.iterations();
  }
  return seconds;
}

double iterations_in(double seconds, const Phases& phases) {
  double iterations = 0.0;
  for (const Stretch& phase : phases) {
    const double here = std::min(seconds, phase.seconds);
    iterations += here / phase.of_iteration;
    seconds -= here;
  }
  return iterations;
}

// Until a Balancer has three rounds of two iterations, of 0.5, 1 and 2 s at least, besides the one
// in which nodes come, and the two after which shares change.
double settling_seconds(double of_iteration) {
  return std::max(9.0 * of_iteration, 3.5 + 3.0 * of_iteration);
}

std::vector<Crew> crews_of(const BurstFacts& facts, const Nodes& nodes) {
  std::vector<Crew> crews;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const PoolOffer& pool = facts.pools[i];
    crews.push_back({nodes[i] * pool.workers, pool.speed * share_of_time(pool)});
  }
  return crews;
}

std::vector<Crew> all_crews(const BurstFacts& facts, const Nodes& nodes) {
  std::vector<Crew> crews = crews_of(facts, nodes);
  crews.push_back(facts.others);
  return crews;
}

double seconds_of(const BurstFacts& facts, const std::vector<Crew>& crews) {
  double slower = 1.0;
  for (const Crew& crew : crews) {
    if (crew.workers > 0 && crew.speed > 0.0) {
      slower = std::max(slower, facts.unexplained_speed / crew.speed);
    }
  }
  RingLine line = facts.line;
  line.member_bytes_per_second /= slower;
  return iteration_time(facts.work, line, crews).all() + slower * facts.unexplained;
}

// While nodes that have come have the share of the mean of those that were running.
double seconds_unsettled(const BurstFacts& facts, const Nodes& running, const Nodes& nodes) {
  std::vector<Crew> crews = all_crews(facts, running);
  double workers = 0.0, speed = 0.0;
  for (const Crew& crew : crews) {
    workers += crew.workers;
    speed += crew.workers * crew.speed;
  }
  Nodes newcomers = nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) newcomers[i] -= running[i];
  for (Crew crew : crews_of(facts, newcomers)) {
    crew.share = workers > 0.0 && speed > 0.0 ? speed / workers : 1.0;
    crews.push_back(crew);
  }
  return seconds_of(facts, crews);
}

// The paces of a run with so many nodes, from now on.
Phases phases_of(const BurstFacts& facts, const Nodes& nodes) {
  Nodes running = nodes;
  double delay = 0.0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    running[i] = std::min(nodes[i], facts.pools[i].running);
    if (nodes[i] > running[i]) delay = std::max(delay, facts.pools[i].starts_in);
  }
  Phases phases;
  if (running != nodes) {
    const double unsettled = seconds_unsettled(facts, running, nodes);
    phases.push_back({delay, iteration_seconds(facts, running)});
    if (std::isfinite(unsettled)) phases.push_back({settling_seconds(unsettled), unsettled});
  }
  phases.push_back({kNever, iteration_seconds(facts, nodes)});
  return phases;
}

// Whether these can be kept until the next decision, which could still give all back in time. Those
// that are too many now are given back by then.
bool can_be_held(const BurstFacts& facts, const BurstLimits& limits, const Nodes& nodes) {
  if (!limits.budget) return true;
  double cost = 0.0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const PoolOffer& pool = facts.pools[i];
    const double seconds = nodes[i] * limits.decide_every +
                           std::max(nodes[i], pool.costing) * pool.stops_in + pool.leaving_seconds;
    cost += seconds * pool.price / 3600.0;
  }
  return cost_per_second(facts, nodes) == 0.0 || facts.spent + cost <= *limits.budget;
}

bool has_workers(const BurstFacts& facts, const Nodes& nodes) {
  return facts.others.workers > 0 ||
         std::ranges::any_of(nodes, [](auto count) { return count > 0; });
}

double most_cost(const BurstForecast& made) { return made.cost + made.give_back; }

bool is_in_time(const BurstFacts& facts, const BurstLimits& limits, const BurstForecast& made,
                double spare) {
  return !limits.finish_within || made.seconds <= spare * (*limits.finish_within - facts.elapsed);
}

// In time the cheapest counts, and else the one that ends first.
BurstForecast best_of(const BurstFacts& facts, const BurstLimits& limits,
                      const std::vector<BurstForecast>& all) {
  const BurstForecast* cheapest = nullptr;
  const BurstForecast* first = nullptr;
  for (const BurstForecast& each : all) {
    if (first == nullptr || each.seconds < first->seconds) first = &each;
    if (!limits.finish_within || !is_in_time(facts, limits, each, kSpare)) continue;
    if (cheapest == nullptr || most_cost(each) < most_cost(*cheapest)) cheapest = &each;
  }
  if (cheapest != nullptr) return *cheapest;
  // None ends, so most has to be made of the budget.
  if (!std::isfinite(first->seconds))
    return *std::ranges::max_element(all, {}, &BurstForecast::made);
  const double nearly = first->seconds * kNearlyAsGood;
  const BurstForecast* best = first;
  for (const BurstForecast& each : all) {
    if (each.seconds <= nearly && most_cost(each) < most_cost(*best)) best = &each;
  }
  return *best;
}

bool is_worth_a_change(const BurstFacts& facts, const BurstLimits& limits, const BurstForecast& now,
                       const BurstForecast& best) {
  if (!std::isfinite(now.seconds)) {
    return std::isfinite(best.seconds) || now.made < kWorthwhile * best.made;
  }
  const bool is_quicker = best.seconds < kWorthwhile * now.seconds;
  const bool is_cheaper =
      most_cost(best) - facts.spent < kWorthwhile * (most_cost(now) - facts.spent);
  if (!limits.finish_within) {
    return is_quicker || (is_cheaper && best.seconds <= kNearlyAsGood * now.seconds);
  }
  if (is_in_time(facts, limits, now, kLeastSpare)) {
    return is_cheaper && is_in_time(facts, limits, best, 1.0);
  }
  return is_quicker || (best.seconds < now.seconds && is_in_time(facts, limits, best, 1.0));
}

std::string reason_for(const BurstFacts& facts, const BurstLimits& limits,
                       const BurstForecast& made) {
  std::string text = fmt::format("{}: ", nodes_text(facts, made.nodes));
  text += std::isfinite(made.seconds) ? fmt::format("the run ends in {}", time_text(made.seconds))
                                      : std::string("the run cannot end");
  if (limits.finish_within) {
    const double left = *limits.finish_within - facts.elapsed;
    text += left > 0.0 ? fmt::format(" of {} that are left", time_text(left))
                       : std::string(" after its deadline");
    if (left > 0.0 && !is_in_time(facts, limits, made, 1.0)) text += ", which is too late";
  }
  text += fmt::format(", for {}", amount_text(made.cost));
  if (limits.budget) text += fmt::format(" of {}", amount_text(*limits.budget));
  if (!made.lasts) text += "; the budget does not last to the end";
  return text;
}

}  // namespace

std::string nodes_text(const BurstFacts& facts, const Nodes& nodes) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] > 0) parts.push_back(fmt::format("{} of {}", nodes[i], facts.pools[i].name));
  }
  return parts.empty() ? "no nodes" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string time_text(double seconds) {
  if (!std::isfinite(seconds)) return "never";
  if (seconds < 99.5) return fmt::format("{:.0f} s", seconds);
  const auto minutes = std::llround(seconds / 60.0);
  if (minutes < 100) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

double iteration_seconds(const BurstFacts& facts, const Nodes& nodes) {
  return seconds_of(facts, all_crews(facts, nodes));
}

BurstForecast forecast(const BurstFacts& facts, const BurstLimits& limits, const Nodes& nodes) {
  BurstForecast made{.nodes = nodes};
  const Phases phases = phases_of(facts, nodes);
  const double rate = cost_per_second(facts, nodes);
  made.seconds = seconds_for(facts.iterations_left, phases);
  made.made = std::isfinite(made.seconds) ? facts.iterations_left : 0.0;
  made.cost = facts.spent;
  if (rate == 0.0) return made;
  made.cost += rate * made.seconds;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const PoolOffer& pool = facts.pools[i];
    made.give_back += nodes[i] * pool.stops_in * pool.price / 3600.0;
  }
  if (!limits.budget || most_cost(made) <= *limits.budget) return made;
  // The nodes go when the money has gone, and the others make the rest.
  made.lasts = false;
  const double reserve = rate * limits.decide_every + made.give_back;
  const double lasts = std::max(0.0, (*limits.budget - facts.spent - reserve) / rate);
  made.made = iterations_in(lasts, phases);
  const double left = facts.iterations_left - made.made;
  made.seconds = lasts;
  if (left > 0.0) made.seconds += left * iteration_seconds(facts, Nodes(nodes.size(), 0));
  made.cost = facts.spent + rate * lasts;
  return made;
}

BurstForecast forecast(const BurstFacts& facts, const BurstLimits& limits) {
  Nodes nodes;
  for (const PoolOffer& pool : facts.pools) nodes.push_back(pool.wanted);
  return forecast(facts, limits, nodes);
}

std::vector<Nodes> worth_a_look(const BurstFacts& facts) {
  std::vector<std::size_t> order(facts.pools.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto price_of_work = [&](std::size_t i) {
    const PoolOffer& pool = facts.pools[i];
    const double work = pool.workers * pool.speed * share_of_time(pool);
    return work > 0.0 ? pool.price / work : kNever;
  };
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return price_of_work(a) < price_of_work(b); });
  std::vector<Nodes> all{Nodes(facts.pools.size(), 0)};
  for (const std::size_t i : order) {
    for (std::uint32_t count = 1; count <= facts.pools[i].most; ++count) {
      all.push_back(all.back());
      all.back()[i] = count;
    }
  }
  return all;
}

namespace {

std::string spent_text(const BurstFacts& facts, const BurstLimits& limits) {
  return fmt::format(
      "{} of {} are spent, which leaves too little for a node, and no other worker is there",
      amount_text(facts.spent), amount_text(limits.budget.value_or(0.0)));
}

// Nodes that cost most for their work go first.
BurstDecision decide_unmeasured(const BurstFacts& facts, const BurstLimits& limits) {
  BurstDecision decision{forecast(facts, limits)};
  Nodes& nodes = decision.forecast.nodes;
  const std::vector<Nodes> all = worth_a_look(facts);
  if (!has_workers(facts, nodes)) nodes = all.at(1);
  for (auto less = all.rbegin(); !can_be_held(facts, limits, nodes) && less != all.rend(); ++less) {
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = std::min(nodes[i], (*less)[i]);
  }
  decision.must_end = !has_workers(facts, nodes);
  decision.changes = nodes != forecast(facts, limits).nodes;
  decision.reason = decision.must_end
                        ? spent_text(facts, limits)
                        : fmt::format("{}: nothing is measured yet", nodes_text(facts, nodes));
  return decision;
}

}  // namespace

BurstDecision decide(const BurstFacts& facts, const BurstLimits& limits) {
  if (!facts.measured) return decide_unmeasured(facts, limits);
  std::vector<BurstForecast> all;
  for (const Nodes& nodes : worth_a_look(facts)) {
    if (has_workers(facts, nodes) && can_be_held(facts, limits, nodes)) {
      all.push_back(forecast(facts, limits, nodes));
    }
  }
  const BurstForecast now = forecast(facts, limits);
  if (all.empty()) {
    return {.forecast = now, .must_end = true, .reason = spent_text(facts, limits)};
  }
  BurstDecision decision{best_of(facts, limits, all)};
  const BurstForecast& best = decision.forecast;
  if (can_be_held(facts, limits, now.nodes) && !is_worth_a_change(facts, limits, now, best)) {
    decision.forecast = now;
  }
  decision.changes = decision.forecast.nodes != now.nodes;
  if (limits.finish_within) {
    decision.is_too_late = !is_in_time(facts, limits, decision.forecast, 1.0);
    decision.is_in_time = is_in_time(facts, limits, decision.forecast, kLeastSpare);
  }
  decision.reason = reason_for(facts, limits, decision.forecast);
  return decision;
}

}  // namespace troupe::pipeline
