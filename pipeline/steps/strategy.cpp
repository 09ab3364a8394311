#include "pipeline/steps/strategy.h"

#include <limits>
#include <utility>

#include "pipeline/steps/training_state.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

TrainingOptions options_between_members(TrainingOptions options) {
  const StrategyOptions& strategy = options.strategy;
  if (strategy.kind != StrategyKind::kLocal) return options;
  CHECK(options.micro_batches % strategy.workers == 0, "every worker has as many micro-batches");
  const std::uint32_t each = options.micro_batches / strategy.workers;
  options.worker = {std::exchange(options.schedule, {model::SlotKind::kWorkers}),
                    options.micro_batch, each};
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
  return options;
}

}  // namespace troupe::pipeline
