#include "pipeline/steps/turn_update.h"

#include <algorithm>
#include <cmath>

#include "pipeline/steps/training_state.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

constexpr double kTurnEpsilon = 1e-12;
constexpr double kMostTurnEnergy = 5.0;

void subtract(double rate, std::span<const float> change, const TurnWeights& weights) {
  for (std::size_t i = 0; i < change.size(); ++i) {
    const double w = weights.centre[i] - rate * double{change[i]};
    weights.centre[i] = weights.worker[i] = static_cast<float>(w);
  }
}

void easgd(double rho, std::span<const float> change, const TurnWeights& weights) {
  for (std::size_t i = 0; i < change.size(); ++i) {
    const double x = double{weights.worker[i]} - double{change[i]};
    const double e = rho * (x - double{weights.centre[i]});
    weights.worker[i] = static_cast<float>(x - e);
    weights.centre[i] = static_cast<float>(weights.centre[i] + e);
  }
}

void gem(const StrategyOptions& strategy, std::span<const float> change,
         const TurnWeights& weights) {
  CHECK(weights.moment.size() == change.size() && weights.stale.size() == change.size());
  for (std::size_t i = 0; i < change.size(); ++i) {
    const double u = -double{change[i]};
    const double m = strategy.momentum * double{weights.moment[i]} + u;
    const double w = weights.centre[i];
    const double c = w - double{weights.stale[i]};
    const double energy = (strategy.kappa * std::abs(m) - std::abs(c)) / std::abs(u + kTurnEpsilon);
    weights.moment[i] = static_cast<float>(m);
    weights.stale[i] = weights.centre[i];
    weights.centre[i] = weights.worker[i] =
        static_cast<float>(w + std::clamp(energy, 0.0, kMostTurnEnergy) * u);
  }
}

}  // namespace

runtime::Hash128 with_turn(const runtime::Hash128& order, std::uint32_t worker) {
  runtime::Hasher hasher;
  hasher.add_value(order);
  hasher.add_value(worker);
  return hasher.digest();
}

void end_turn(TurnState& turns, std::span<const std::uint32_t> workers) {
  WorkerState& own = turns.workers.at(workers.front());
  ++own.turns;
  for (const std::uint32_t worker : workers) {
    turns.order = with_turn(turns.order, worker);
    if (worker != workers.front()) turns.workers.at(worker) = own;
  }
}

void begin_workers(TrainingState& state) {
  for (WorkerState& worker : state.turns->workers) {
    worker.generator = state.generator;
    worker.discriminator = state.discriminator;
    for (const std::size_t n : {kGenerator, kDiscriminator}) {
      if (!worker.moment[n].empty()) worker.stale[n] = state.network(n).weights;
    }
  }
}

bool says_next_turn(const StepHeader& header, const TrainingOptions& options,
                    const TrainingState& state) {
  if (!options.has_turns()) return true;
  const bool last = state.slot + 1 == options.schedule.size();
  const WorkerSet next = turn_behind(header, options);
  const auto is_open = [&](std::uint32_t worker) {
    const std::uint64_t turns = state.turns->workers.at(worker).turns;
    return turns + state.turns->next.has(worker) == state.iteration + last;
  };
  return next.size() == options.strategy.at_a_time(last ? 0 : state.slot + 1) &&
         std::ranges::all_of(next.numbers(), is_open);
}

void update_in_turn(const StrategyOptions& strategy, std::uint32_t workers,
                    std::span<const float> change, const TurnWeights& weights) {
  CHECK(weights.centre.size() == change.size() && weights.worker.size() == change.size());
  switch (strategy.kind) {
    case StrategyKind::kDownpour:
    case StrategyKind::kQuorum:
      return subtract(strategy.rate * workers / strategy.at_a_time(), change, weights);
    case StrategyKind::kEasgd:
      return easgd(strategy.rho, change, weights);
    case StrategyKind::kGem:
      return gem(strategy, change, weights);
    case StrategyKind::kSynchronous:
    case StrategyKind::kLocal:
    case StrategyKind::kTree:
      break;
  }
  CHECK(false, "a strategy with turns");
}

void update_moving_in_turn(const StrategyOptions& strategy, std::uint32_t workers,
                           std::span<const float> after, std::span<float> centre,
                           std::span<float> worker) {
  CHECK(centre.size() == after.size() && worker.size() == after.size());
  const bool keeps_own = strategy.kind == StrategyKind::kEasgd;
  const double part = keeps_own ? strategy.rho : 1.0 * workers / strategy.workers;
  for (std::size_t i = 0; i < after.size(); ++i) {
    centre[i] = static_cast<float>(centre[i] + part * (double{after[i]} - double{centre[i]}));
    worker[i] = keeps_own ? after[i] : centre[i];
  }
}

}  // namespace troupe::pipeline
