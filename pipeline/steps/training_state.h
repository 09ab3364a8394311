#pragma once

// Everything the next bits depend on, and how a committed step changes it. Two runs with equal
// states continue equally; nothing about placement, time or Views is in it.
//
// The functions are pure but for the state that apply() changes; a state has one owner at a time.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/gan.h"
#include "model/learning_rate.h"
#include "model/optimiser.h"
#include "pipeline/data/short_iteration.h"
#include "pipeline/steps/reduction_format.h"
#include "pipeline/steps/state_layout.h"
#include "pipeline/steps/step_record.h"
#include "pipeline/steps/stopping.h"
#include "pipeline/steps/strategy.h"
#include "pipeline/steps/weights_mean.h"
#include "pipeline/steps/worker_set.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {

// The options of training; equal on every member, part of the topology.
struct TrainingOptions {
  std::uint64_t seed = 1;
  std::uint32_t micro_batch = 16;   // b, events
  std::uint32_t micro_batches = 4;  // M
  std::vector<model::SlotKind> schedule{model::SlotKind::kDReal, model::SlotKind::kDFake,
                                        model::SlotKind::kG, model::SlotKind::kG};
  model::OptimiserOptions generator_optimiser, discriminator_optimiser;
  model::LearningRateOptions generator_rate, discriminator_rate;
  // How gradients are sent between members; none: exactly, as integers, so that no bit depends on
  // how many members there are.
  std::optional<ReductionFormat> lossy;
  // From the sampler: where epochs end, and how many micro-batches their last iteration takes.
  std::uint64_t iterations_per_epoch = 1;
  ShortIteration short_iteration{};
  // Committed iterations in a row whose fakes are all empty before the run counts as diverged.
  std::uint32_t empty_iterations_limit = 10;
  std::optional<StoppingOptions> stop;  // none: training ends with its last iteration
  std::optional<MeanOptions> mean;      // none: no mean of weights is kept
  StrategyOptions strategy;             // as a topology has it
  // Set by options_between_members() where logical workers train alone: their iterations.
  std::optional<WorkerOptions> worker = {};

  // What gradients are summed as, or changes of weights in a step of workers.
  SumKind gradient_sums() const {
    if (worker && strategy.precision == ChangePrecision::kInt8) return SumKind::kInt16;
    return lossy ? SumKind::kFloat32 : SumKind::kInt64;
  }
  // What Views share out and loaders send are parts of micro-batches (WorkerOptions::parts).
  std::uint32_t parts() const { return worker ? worker->parts : 1; }
  std::uint32_t all_parts() const { return micro_batches * parts(); }
  std::uint32_t events_of_part() const { return micro_batch / parts(); }
  ShortIteration short_iteration_in_parts() const {
    return {short_iteration.every, short_iteration.micro_batches * parts()};
  }
  // Micro-batches share the statistics of batch norm.
  bool has_rounds() const {
    return std::ranges::find(schedule, model::SlotKind::kStatistics) != schedule.end();
  }
  bool has_turns() const { return worker && strategy.takes_turns(); }
  bool has_outer() const { return worker && !strategy.takes_turns(); }
  // M, or fewer in a short iteration. Scales are those of M in both.
  std::uint32_t micro_batches_in(std::uint64_t iteration) const {
    return short_iteration.micro_batches_in(iteration, micro_batches);
  }
  std::uint64_t events_in(std::uint64_t iteration) const {
    return std::uint64_t{micro_batch} * micro_batches_in(iteration);
  }
  // Those of a step of the iteration, of which a turn takes its workers' alone.
  std::uint32_t micro_batches_of_step(std::uint64_t iteration, std::uint32_t slot) const {
    return has_turns() ? strategy.at_a_time(slot) : micro_batches_in(iteration);
  }
  std::uint64_t events_of_step(std::uint64_t iteration, std::uint32_t slot) const {
    return std::uint64_t{micro_batch} * micro_batches_of_step(iteration, slot);
  }
};

// The arrays that rounds have filled (model/shared_norm.h), by network: zeros at first. Each step
// has its rounds in front of it, so of those of another it reads only the shifts.
struct SharedState {
  std::array<std::vector<float>, 2> values;
};

// What the outer optimiser keeps of a run with workers that do not take turns.
struct OuterState {
  std::array<std::vector<float>, 2> velocity;  // by network, one per weight
};

// A worker that takes turns, as it was behind its last one, with the rates of its own iterations.
struct WorkerState {
  std::uint64_t turns = 0;  // that it has had
  NetworkState generator, discriminator;
  // A worker of kGem has these by network, one per weight: the momentum of its changes, and the
  // weights that were the centre's before its last turn.
  std::array<std::vector<float>, 2> moment, stale;

  NetworkState& network(std::size_t number) {
    return number == kGenerator ? generator : discriminator;
  }
};

struct TurnState {
  WorkerSet next;  // the workers whose turn the next step is
  // with_turn() over the workers of all turns so far, ascending in one turn: two states in
  // different orders differ in it.
  runtime::Hash128 order;
  std::vector<WorkerState> workers;
};

struct TrainingState {
  NetworkState generator;
  NetworkState discriminator;
  std::vector<std::vector<std::int16_t>>
      scales;  // [slot][contribution tensor], model::kNoExponent at first

  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;             // of the next step
  std::uint64_t iteration = 0;         // of the next step, counted over all epochs
  std::uint32_t slot = 0;              // of the next step
  std::uint64_t epoch_events = 0;      // events of the epoch consumed by finished iterations
  std::uint32_t micro_batch = 0;       // b
  std::uint32_t micro_batches = 0;     // M
  std::uint32_t empty_iterations = 0;  // in a row
  // Sums over the epoch's committed steps of each network's weighted loss, and their counts: the
  // plateau metric.
  std::array<double, 2> epoch_loss{0.0, 0.0};
  std::array<std::uint64_t, 2> epoch_loss_steps{0, 0};
  std::uint64_t ledger_events = 0;  // over all committed steps
  std::uint64_t ledger_sum = 0;     // of header.event_sum over all committed steps, mod 2^64
  std::string numerics_class;
  runtime::Hash128 data_fingerprint;
  std::optional<StoppingState> stopping;   // where TrainingOptions::stop is set
  std::optional<OuterState> outer = {};    // where TrainingOptions::has_outer()
  std::optional<TurnState> turns = {};     // where TrainingOptions::has_turns()
  std::optional<MeanState> mean = {};      // of result_number(); where TrainingOptions::mean is set
  std::optional<SharedState> shared = {};  // where the schedule has rounds

  std::uint64_t step(std::size_t slots) const { return iteration * slots + slot; }
  // The network that training is for: the one that makes showers, or that a supervised task has.
  std::size_t result_number() const {
    return generator.weights.empty() ? kDiscriminator : kGenerator;
  }
  NetworkState& network(std::size_t number) {
    return number == kGenerator ? generator : discriminator;
  }
  const NetworkState& network(std::size_t number) const {
    return number == kGenerator ? generator : discriminator;
  }
  // What is judged of it and leaves with it: its mean where that is kept.
  const NetworkState& result() const { return mean ? mean->network : network(result_number()); }
};

// By network. Null on the host.
using PlacedOptimisers = std::array<std::unique_ptr<model::PlacedOptimiser>, 2>;

// The state before step 0: weights by seed (model::initialise_parameters), everything else empty.
TrainingState initial_state(const StateLayout& layout, const TrainingOptions& options,
                            std::string numerics_class, runtime::Hash128 data_fingerprint);

// Checks that the state is of workers as the options are, or of none as they are, and that they
// take turns or not as there. Errors (kData) say what differs, and what to do.
runtime::Result<void> check_workers(const TrainingState& state, const TrainingOptions& options);

// The same of a mean of weights.
runtime::Result<void> check_mean(const TrainingState& state, const TrainingOptions& options);

// The same of what micro-batches share.
runtime::Result<void> check_shared(const TrainingState& state, const TrainingOptions& options);

// The network that training is for gets the mean of its weights as its own, and the state has no
// mean any more: for those who do not go on with training.
void put_mean_in_place(TrainingState& state);

// Checks that a state from elsewhere fits this model, schedule and options: their sizes, seed and
// micro-batches, and a slot of the schedule. Then everything below and a checkpoint's writer can
// use it. Errors (kData) say what differs.
runtime::Result<void> check_state(const TrainingState& state, const StateLayout& layout,
                                  const TrainingOptions& options);

// Whether the state's next step is the last one of its epoch.
bool ends_epoch(const TrainingOptions& options, const TrainingState& state);

// Whether training is over before its last iteration, and why, for people. In the midst of an
// iteration it is not.
std::optional<std::string> reason_to_stop(const std::optional<StoppingOptions>& options,
                                          const TrainingState& state);

// XXH3-128 over the fields in checkpoint order (pipeline/steps/state_fields.h), little endian;
// sequences are preceded by their length as 64 bits.
runtime::Hash128 hash_of_state(const TrainingState& state);

// Mean unweighted loss terms of a committed step, in the order of GanDescription::losses, or of
// told_losses() for a step of workers.
std::vector<double> step_losses(const model::ContributionLayout& layout, const StepRecord& record);

// The Euclidean norm of the mean gradient over the record's m micro-batches, of the network that
// the step's optimiser updates: sqrt(sum_i (sums_i 2^-k / m)^2), in double. Infinite if it exceeds
// a double; 0 without gradients. `record` is complete and of a step with these contributions.
// Reads every sum once. For people: no decision depends on it.
double gradient_norm(const model::ContributionLayout& contributions, const StepRecord& record);

// Applies a committed record in place: mean of the sums, optimiser, moving statistics, the mean of
// the weights (one update for each step that updates them, a step of workers too), scales,
// counters, ledger; after an iteration's last slot the learning-rate policies, and after an epoch's
// last iteration epoch and plateau metric (the mean weighted loss of each network's steps), and
// the metric of early stopping.
// Moving statistics: moving = float(momentum) x moving + float(1 - momentum) x mean, in float.
// A step of workers (pipeline/steps/strategy.h) updates both networks with the outer optimiser,
// sets moving statistics and the optimisers' arrays to their means, and counts H iterations of
// steps; or it is a turn, as pipeline/steps/turn_update.h has it, and says whose is the next. All
// or nothing: an error (kDiverged, the empty-image rule: the fakes of empty_iterations_limit
// iterations in a row were all empty) is reported after the state has been advanced, so that the
// checkpoint it leaves is complete. CHECKs that the record is of the state's next step and holds
// all its micro-batches. `placed` are the networks' optimisers where a backend has them, which were
// given this state.
runtime::Result<void> apply(const StateLayout& layout, const TrainingOptions& options,
                            const StepRecord& record, TrainingState& state,
                            const PlacedOptimisers& placed = {});

}  // namespace troupe::pipeline
