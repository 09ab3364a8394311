#include "pipeline/steps/strategy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/training_state.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

constexpr const char* kNoChecks = "; cluster.failure.check_every compares nothing";

std::string turn_text(const StrategyOptions& strategy) {
  if (strategy.kind == StrategyKind::kDownpour) return fmt::format("rate {:g}", strategy.rate);
  if (strategy.kind == StrategyKind::kQuorum) {
    return fmt::format("a step takes the first {}, rate {:g}", strategy.of, strategy.rate);
  }
  if (strategy.kind == StrategyKind::kEasgd) return fmt::format("rho {:g}", strategy.rho);
  return fmt::format("momentum {:g}, kappa {:g}", strategy.momentum, strategy.kappa);
}

}  // namespace

const char* strategy_name(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kSynchronous:
      return "synchronous";
    case StrategyKind::kLocal:
      return "local";
    case StrategyKind::kTree:
      return "tree";
    case StrategyKind::kDownpour:
      return "downpour";
    case StrategyKind::kEasgd:
      return "easgd";
    case StrategyKind::kGem:
      return "gem";
    case StrategyKind::kQuorum:
      return "quorum";
  }
  CHECK(false, "a strategy");
}

TrainingOptions options_between_members(TrainingOptions options, const model::GanDescription& gan) {
  const StrategyOptions& strategy = options.strategy;
  if (!strategy.has_workers()) {
    options.schedule = model::with_rounds(gan, options.schedule);
    return options;
  }
  CHECK(options.micro_batches % strategy.workers == 0, "every worker has as many micro-batches");
  const std::uint32_t each = options.micro_batches / strategy.workers;
  const std::vector<model::SlotKind> steps(strategy.takes_turns() ? strategy.turns() : 1,
                                           model::SlotKind::kWorkers);
  const std::uint32_t parts = strategy.has_sites() ? each : 1;
  options.worker = {std::exchange(options.schedule, steps), options.micro_batch, each, parts};
  options.micro_batch *= strategy.steps * each;
  options.micro_batches = strategy.workers;
  return options;
}

// A worker's state is left behind after its iterations, and with it what an epoch's end decides.
TrainingOptions options_of_worker(TrainingOptions options) {
  if (!options.worker) return options;
  const WorkerOptions worker = *std::exchange(options.worker, std::nullopt);
  options.schedule = worker.schedule;
  options.micro_batch = worker.micro_batch;
  options.micro_batches = worker.micro_batches;
  options.iterations_per_epoch *= options.strategy.steps;
  options.short_iteration = {};
  options.empty_iterations_limit = std::numeric_limits<std::uint32_t>::max();
  options.stop.reset();
  options.mean.reset();
  return options;
}

const char* part_of_sum(const TrainingOptions& options) {
  return options.worker ? "worker" : "micro-batch";
}

std::string strategy_text(const TrainingOptions& options) {
  const StrategyOptions& strategy = options.strategy;
  if (!strategy.has_workers()) return "";
  const auto number = [](std::uint64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const std::uint64_t events =
      std::uint64_t{options.micro_batches / strategy.workers} * options.micro_batch;
  const std::string iterations =
      fmt::format("{} of {}", number(strategy.steps, "iteration"), number(events, "event"));
  const std::string made =
      strategy.has_sites()
          ? fmt::format("{}; the members of each make {} together",
                        number(strategy.workers, "site"), iterations)
          : fmt::format("{}; each makes {} alone", number(strategy.workers, "worker"), iterations);
  const char* const name = strategy_name(strategy.kind);
  if (strategy.takes_turns()) {
    return fmt::format(
        "strategy: {}, {} before its turn, and a turn of each counts as one iteration; {}{}", name,
        made, turn_text(strategy), kNoChecks);
  }
  return fmt::format(
      "strategy: {}, {} in an outer step, which counts as one iteration; outer nesterov, rate "
      "{:g}, momentum {:g}{}{}",
      name, made, strategy.outer.rate, strategy.outer.momentum,
      strategy.precision == ChangePrecision::kInt8 ? "; changes are summed in int8" : "",
      strategy.has_sites() ? kNoChecks : "");
}

std::vector<std::size_t> losses_of_steps(const model::GanDescription& gan,
                                         const TrainingOptions& options) {
  std::vector<std::size_t> told;
  const std::size_t terms = gan.losses.size(), all = model::told_losses(gan).size();
  for (std::size_t i = 0; i < all; ++i) {
    const auto updates = [&](model::SlotKind slot) { return updated_network(slot) == i / terms; };
    if (all == terms || std::ranges::any_of(options.worker->schedule, updates)) told.push_back(i);
  }
  return told;
}

}  // namespace troupe::pipeline
