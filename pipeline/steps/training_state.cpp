#include "pipeline/steps/training_state.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "model/exact_sum.h"
#include "pipeline/steps/state_fields.h"
#include "pipeline/steps/turn_update.h"

namespace troupe::pipeline {
namespace {

static_assert(std::endian::native == std::endian::little, "hashes are of little-endian bytes");

// Everything of variable length is preceded by its size, so that no two states run together.
struct HashVisitor {
  runtime::Hasher hasher;

  template <class T>
  void sequence(std::span<const T> values) {
    hasher.add_value(static_cast<std::uint64_t>(values.size()));
    hasher.add(std::as_bytes(values));
  }
  void parameters(std::size_t, ParameterPart, const std::vector<float>& values) {
    sequence(std::span(values));
  }
  void scales(const std::vector<std::vector<std::int16_t>>& slots) {
    hasher.add_value(static_cast<std::uint64_t>(slots.size()));
    for (const auto& slot : slots) sequence(std::span(slot));
  }
  template <class T>
  void number(const std::string&, const T& value) {
    hasher.add_value(value);
  }
  void text(const std::string&, const std::string& value) { sequence(std::span(value)); }
  void hash(const std::string&, const runtime::Hash128& value) { hasher.add_value(value); }
  void workers(const std::string&, const std::vector<WorkerState>& values, auto each) {
    hasher.add_value(static_cast<std::uint64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) each(i, values[i]);
  }
  void perhaps(const std::string&, const auto& value, auto each) {
    if (value) each(*value);
  }
};

NetworkState initial_network(const model::ParameterLayout& layout, std::uint64_t seed,
                             std::size_t number, const model::OptimiserOptions& optimiser) {
  NetworkState network;
  network.weights.resize(static_cast<std::size_t>(layout.weights_size));
  network.moving.resize(static_cast<std::size_t>(layout.moving_size));
  network.optimiser_arrays.resize(network.weights.size() *
                                  static_cast<std::size_t>(model::optimiser_arrays(optimiser)));
  model::initialise_parameters(layout, seed, static_cast<int>(number), network.weights.data(),
                               network.moving.data());
  return network;
}

runtime::Error differs(std::string what) { return {runtime::ErrorKind::kData, std::move(what)}; }

runtime::Result<void> check_sizes(const NetworkState& network, std::size_t number,
                                  const StateLayout& layout,
                                  const model::OptimiserOptions& optimiser) {
  const model::ParameterLayout& parameters = layout.networks[number].parameters;
  const auto check = [&](const char* part, std::size_t found,
                         std::int64_t expected) -> runtime::Result<void> {
    if (std::cmp_equal(found, expected)) return {};
    return differs(fmt::format("of another model or optimiser: its {} has {} {}, this one {}",
                               kNetworkNames[number], found, part, expected));
  };
  RETURN_IF_ERROR(check("weights", network.weights.size(), parameters.weights_size));
  RETURN_IF_ERROR(check("moving statistics", network.moving.size(), parameters.moving_size));
  return check("optimiser values", network.optimiser_arrays.size(),
               parameters.weights_size * model::optimiser_arrays(optimiser));
}

runtime::Result<void> check_schedule(const TrainingState& state, const StateLayout& layout,
                                     const TrainingOptions& options) {
  if (state.scales.size() != options.schedule.size() || state.slot >= options.schedule.size()) {
    return differs(fmt::format("its schedule has {} slots, this one {}", state.scales.size(),
                               options.schedule.size()));
  }
  for (std::size_t i = 0; i < state.scales.size(); ++i) {
    const std::size_t expected = layout.of(options.schedule[i]).tensors.size();
    if (state.scales[i].size() == expected) continue;
    return differs(
        fmt::format("slot {} ({}) of its schedule contributes {} tensors, {} expected: "
                    "the schedules or the losses differ",
                    i, model::slot_name(options.schedule[i]), state.scales[i].size(), expected));
  }
  return {};
}

// The first turn is that of the first workers.
TurnState initial_turns(const TrainingState& state, const StrategyOptions& strategy) {
  WorkerState worker;
  if (strategy.kind == StrategyKind::kGem) {
    worker.moment[kGenerator].resize(state.generator.weights.size());
    worker.moment[kDiscriminator].resize(state.discriminator.weights.size());
  }
  return {WorkerSet::of_first(strategy.at_a_time(0)),
          {},
          std::vector<WorkerState>(strategy.workers, worker)};
}

runtime::Result<void> check_turns(const TrainingState& state, const StateLayout& layout,
                                  const TrainingOptions& options) {
  if (!state.turns) return {};
  if (state.turns->workers.size() != options.strategy.workers) {
    return differs(fmt::format("trained with {} workers, the topology has {}",
                               state.turns->workers.size(), options.strategy.workers));
  }
  if (const char* const fault = fault_of(state)) {
    return differs(fmt::format("no state that a run comes to: it has {}", fault));
  }
  const std::uint32_t found = state.turns->next.size(),
                      expected = options.strategy.at_a_time(state.slot);
  if (found != expected) {
    return differs(
        fmt::format("trained with turns of {} workers, where the topology has those of "
                    "{}",
                    found, expected));
  }
  const bool is_gem = options.strategy.kind == StrategyKind::kGem;
  for (const WorkerState& worker : state.turns->workers) {
    RETURN_IF_ERROR(check_sizes(worker.generator, kGenerator, layout, options.generator_optimiser));
    RETURN_IF_ERROR(
        check_sizes(worker.discriminator, kDiscriminator, layout, options.discriminator_optimiser));
    for (const std::size_t n : {kGenerator, kDiscriminator}) {
      const std::size_t expected = is_gem ? state.network(n).weights.size() : 0;
      if (worker.moment[n].size() == expected && worker.stale[n].size() == expected) continue;
      return differs("of another strategy: its workers have other momenta than this one's");
    }
  }
  return {};
}

std::size_t shared_size(const StateLayout& layout, std::size_t network) {
  return static_cast<std::size_t>(model::kSharedArrays *
                                  layout.networks[network].parameters.moving_size);
}

// An optimiser keeps any number of arrays, each of the weights' size.
bool has_whole_arrays(const NetworkState& network) {
  const std::size_t weights = network.weights.size();
  return weights == 0 ? network.optimiser_arrays.empty()
                      : network.optimiser_arrays.size() % weights == 0;
}

}  // namespace

TrainingState initial_state(const StateLayout& layout, const TrainingOptions& options,
                            std::string numerics_class, runtime::Hash128 data_fingerprint) {
  TrainingState state;
  state.generator = initial_network(layout.networks[kGenerator].parameters, options.seed,
                                    kGenerator, options.generator_optimiser);
  state.discriminator = initial_network(layout.networks[kDiscriminator].parameters, options.seed,
                                        kDiscriminator, options.discriminator_optimiser);
  for (const model::SlotKind slot : options.schedule) {
    state.scales.emplace_back(layout.of(slot).tensors.size(), model::kNoExponent);
  }
  state.seed = options.seed;
  state.micro_batch = options.micro_batch;
  state.micro_batches = options.micro_batches;
  state.numerics_class = std::move(numerics_class);
  state.data_fingerprint = data_fingerprint;
  if (options.stop) state.stopping.emplace();
  if (options.mean) state.mean = mean_of(state.network(state.result_number()));
  if (options.has_turns()) {
    state.turns = initial_turns(state, options.strategy);
    begin_workers(state);
  }
  if (options.has_rounds()) {
    state.shared.emplace();
    for (const std::size_t n : {kGenerator, kDiscriminator}) {
      state.shared->values[n].resize(shared_size(layout, n));
    }
  }
  if (options.has_outer()) {
    state.outer.emplace();
    state.outer->velocity[kGenerator].resize(state.generator.weights.size());
    state.outer->velocity[kDiscriminator].resize(state.discriminator.weights.size());
  }
  return state;
}

runtime::Result<void> check_workers(const TrainingState& state, const TrainingOptions& options) {
  const auto check = [](const char* which, const char* strategies, bool found,
                        bool expected) -> runtime::Result<void> {
    if (found == expected) return {};
    return differs(fmt::format(
        "trained {} {} (train.strategy: {}), which the topology {}: give it the strategy of the "
        "checkpoint, or begin a run with the checkpoint's weights (run TOPOLOGY --from FILE)",
        found ? "with" : "without", which, strategies, found ? "lacks" : "has"));
  };
  RETURN_IF_ERROR(check("workers", "local or tree", state.outer.has_value(), options.has_outer()));
  return check("workers that take turns", "downpour, easgd, gem or quorum", state.turns.has_value(),
               options.has_turns());
}

runtime::Result<void> check_mean(const TrainingState& state, const TrainingOptions& options) {
  if (state.mean.has_value() == options.mean.has_value()) return {};
  return differs(fmt::format(
      "trained {} a mean of weights (train.mean), which the topology {}: give it the train.mean of "
      "the checkpoint, or begin a run with the checkpoint's weights (run TOPOLOGY --from FILE)",
      state.mean ? "with" : "without", state.mean ? "lacks" : "has"));
}

runtime::Result<void> check_shared(const TrainingState& state, const TrainingOptions& options) {
  if (state.shared.has_value() == options.has_rounds()) return {};
  return differs(fmt::format(
      "trained {} batch norm over all micro-batches (batch_norm: {{sync: true}}), which the "
      "topology {}: give it the layers of the checkpoint, or begin a run with the checkpoint's "
      "weights (run TOPOLOGY --from FILE)",
      state.shared ? "with" : "without", state.shared ? "lacks" : "has"));
}

void put_mean_in_place(TrainingState& state) {
  if (!state.mean) return;
  NetworkState& network = state.network(state.result_number());
  network.weights = std::move(state.mean->network.weights);
  network.moving = std::move(state.mean->network.moving);
  state.mean.reset();
}

runtime::Result<void> check_state(const TrainingState& state, const StateLayout& layout,
                                  const TrainingOptions& options) {
  RETURN_IF_ERROR(check_sizes(state.generator, kGenerator, layout, options.generator_optimiser));
  RETURN_IF_ERROR(
      check_sizes(state.discriminator, kDiscriminator, layout, options.discriminator_optimiser));
  RETURN_IF_ERROR(check_schedule(state, layout, options));
  const auto check = [](const char* name, std::uint64_t found,
                        std::uint64_t expected) -> runtime::Result<void> {
    if (found == expected) return {};
    return differs(fmt::format("trained with {} {}, the topology has {}", name, found, expected));
  };
  if (state.stopping.has_value() != options.stop.has_value()) {
    return differs(options.stop ? "trained without train.stop, which the topology has"
                                : "trained with train.stop, which the topology lacks");
  }
  RETURN_IF_ERROR(check_workers(state, options));
  if (state.outer &&
      (state.outer->velocity[kGenerator].size() != state.generator.weights.size() ||
       state.outer->velocity[kDiscriminator].size() != state.discriminator.weights.size())) {
    return differs("of another model: its outer velocity has another size than its weights");
  }
  RETURN_IF_ERROR(check_turns(state, layout, options));
  RETURN_IF_ERROR(check_mean(state, options));
  RETURN_IF_ERROR(check_shared(state, options));
  for (const std::size_t n : {kGenerator, kDiscriminator}) {
    if (!state.shared || state.shared->values[n].size() == shared_size(layout, n)) continue;
    return differs("of another model: its shared statistics have another size than this one's");
  }
  const NetworkState& network = state.network(state.result_number());
  if (state.mean && (state.mean->network.weights.size() != network.weights.size() ||
                     state.mean->network.moving.size() != network.moving.size())) {
    return differs("of another model: the mean of its weights has another size than they have");
  }
  RETURN_IF_ERROR(check("seed", state.seed, options.seed));
  RETURN_IF_ERROR(check("micro_batch", state.micro_batch, options.micro_batch));
  return check("micro_batches", state.micro_batches, options.micro_batches);
}

bool ends_epoch(const TrainingOptions& options, const TrainingState& state) {
  const std::uint64_t before_last =
      (options.iterations_per_epoch - 1) * options.micro_batch * options.micro_batches;
  return state.slot + 1 == options.schedule.size() && state.epoch_events >= before_last;
}

std::optional<std::string> reason_to_stop(const std::optional<StoppingOptions>& options,
                                          const TrainingState& state) {
  if (!options || !state.stopping || state.slot != 0) return std::nullopt;
  return reason_to_stop(*options, *state.stopping);
}

runtime::Hash128 hash_of_state(const TrainingState& state) {
  HashVisitor visitor;
  visit_state(state, visitor);
  return visitor.hasher.digest();
}

namespace {

// As many workers have had their turns of the iteration as its slots before the next one take, and
// those of the next one have not.
bool has_sound_turns(const TrainingState& state) {
  const auto& workers = state.turns->workers;
  std::size_t had = 0;
  for (const WorkerState& worker : workers) {
    if (worker.turns != state.iteration && worker.turns != state.iteration + 1) return false;
    had += worker.turns - state.iteration;
  }
  const std::vector<std::uint32_t> next = state.turns->next.numbers();
  const bool is_last = std::size_t{state.slot} + 1 == state.scales.size();
  const bool is_of_slot =
      is_last ? had + next.size() == workers.size() : had == state.slot * next.size();
  return is_of_slot && !next.empty() && std::ranges::all_of(next, [&](std::uint32_t worker) {
           return worker < workers.size() && workers[worker].turns == state.iteration;
         });
}

}  // namespace

const char* fault_of(const TrainingState& state) {
  if (!has_whole_arrays(state.generator) || !has_whole_arrays(state.discriminator)) {
    return "optimiser arrays that are not of the weights' size";
  }
  if (state.turns) {
    const auto& workers = state.turns->workers;
    const bool sound = std::ranges::all_of(workers, [](const WorkerState& worker) {
      return has_whole_arrays(worker.generator) && has_whole_arrays(worker.discriminator);
    });
    if (!sound) return "a worker's optimiser arrays that are not of the weights' size";
    if (!has_sound_turns(state)) return "workers that have had other turns than its step says";
  }
  return state.slot < state.scales.size() ? nullptr : "a slot beyond the schedule";
}

}  // namespace troupe::pipeline
