#include "config/strategy_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/network_check.h"
#include "model/rounded_sum.h"
#include "model/shared_statistics.h"
#include "pipeline/steps/state_fields.h"

namespace troupe::config {
namespace {

constexpr std::uint64_t kMostWorkerEvents = 1 << 20;

const char* workers_path(const pipeline::StrategyOptions& strategy) {
  return strategy.has_sites() ? "train.strategy.sites" : "train.strategy.workers";
}

// An iteration is one turn of each worker.
void check_turns(const Topology& topology, Reader& reader) {
  const auto& strategy = topology.train.options.strategy;
  const char* const workers = workers_path(strategy);
  const char* const name = pipeline::strategy_name(strategy.kind);
  if (strategy.of > strategy.workers && strategy.kind == pipeline::StrategyKind::kQuorum) {
    reader.broken_rule(
        {"train.strategy.of", workers},
        fmt::format("a step takes the first {} that are ready (train.strategy.of), and "
                    "there are {}; set train.strategy.of to {} or less",
                    strategy.of, strategy.workers, strategy.workers));
  }
  if (strategy.workers > pipeline::kMostWorkersInTurns) {
    reader.broken_rule({workers}, fmt::format("{} workers, at most {} can take turns",
                                              strategy.workers, pipeline::kMostWorkersInTurns));
  }
  if (topology.train.remainder == pipeline::Remainder::kPartial) {
    reader.broken_rule({"train.remainder", "train.strategy.kind"},
                       fmt::format("with {} every worker has a turn in an iteration, and partial "
                                   "leaves some without events; take drop or carry",
                                   name));
  }
}

}  // namespace

void check_rounds(const Topology& topology, Reader& reader) {
  const auto& options = topology.train.options;
  const model::GanDescription& gan = topology.model.gan;
  const std::size_t all = model::with_rounds(gan, options.schedule).size();
  if (all == options.schedule.size()) return;
  const auto is_shared = [](const model::Layer& layer) {
    const auto* norm = std::get_if<model::BatchNorm>(&layer.kind);
    return norm != nullptr && norm->sync;
  };
  const bool of_generator = std::ranges::any_of(gan.generator.layers, is_shared);
  const std::string layers =
      (of_generator ? "model.generator" : judge_path(gan)) + std::string(".layers");
  if (options.strategy.has_workers()) {
    reader.broken_rule({layers, "train.strategy.kind"},
                       fmt::format("a batch_norm with sync needs the events of all micro-batches, "
                                   "and with {} each worker trains alone; take strategy "
                                   "synchronous or leave sync out",
                                   pipeline::strategy_name(options.strategy.kind)));
  }
  if (all > pipeline::kMostSlots) {
    reader.broken_rule(
        {layers, "train.schedule"},
        fmt::format("an iteration takes {} steps, of which {} are rounds of batch_norm with sync; "
                    "at most {} are possible, so leave sync out of some layers",
                    all, all - options.schedule.size(), pipeline::kMostSlots));
  }
}

void check_strategy(const Topology& topology, Reader& reader) {
  const auto& options = topology.train.options;
  const auto& strategy = options.strategy;
  if (!strategy.has_workers()) return;
  const char* const workers = workers_path(strategy);
  if (options.micro_batches % strategy.workers != 0) {
    return reader.broken_rule(
        {workers, "train.micro_batches"},
        fmt::format("{} micro-batches of an iteration (train.micro_batches) cannot be shared out "
                    "to {} workers evenly; take a multiple of {}, or as many workers ({}) as "
                    "divide them",
                    options.micro_batches, strategy.workers, strategy.workers, workers));
  }
  const std::uint64_t events = std::uint64_t{options.micro_batches / strategy.workers} *
                               options.micro_batch * strategy.steps;
  if (events > kMostWorkerEvents) {
    reader.broken_rule({"train.strategy.steps", "train.micro_batch", "train.micro_batches"},
                       fmt::format("a worker takes {} events between two outer steps, at most {} "
                                   "are possible; lower steps",
                                   events, kMostWorkerEvents));
  }
  if (topology.train.scaling == Scaling::kWeak) {
    reader.broken_rule({"train.scaling", "train.strategy.kind"},
                       fmt::format("weak counts micro-batches by processes, and the workers of "
                                   "strategy {} are none; take strong",
                                   pipeline::strategy_name(strategy.kind)));
  }
  if (options.lossy) {
    reader.broken_rule({"actors.reducer.reduction", "train.strategy.kind"},
                       "the changes of workers are summed exactly; take reduction exact");
  }
  if (strategy.takes_turns()) check_turns(topology, reader);
  const bool rounds = strategy.precision == pipeline::ChangePrecision::kInt8;
  if (rounds && strategy.workers > model::kMostRounded) {
    reader.broken_rule({workers, "train.strategy.precision"},
                       fmt::format("the sum of {} workers' changes in int8 does not fit 16 bits, "
                                   "that of {} does; lower workers or take precision exact",
                                   strategy.workers, model::kMostRounded));
  }
}

}  // namespace troupe::config
