#pragma once

// The one list of the fields of a TrainingState, in checkpoint order. The state hash, the writer
// and the reader of checkpoints all walk it, so that none can leave out a field that another has. A
// change of the list or its order is a new kCheckpointVersion. What only some runs have stands in
// an optional at the end, so that the states of others keep their hash and their files.

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "pipeline/steps/state_layout.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/fields.h"

namespace troupe::pipeline {

// The vectors of a NetworkState, that of an OuterState, those of a MeanState, of a WorkerState and
// of a SharedState.
enum class ParameterPart : std::uint8_t {
  kWeights,
  kOptimiserArrays,
  kMoving,
  kOuterVelocity,
  kMeanWeights,
  kMeanMoving,
  kMoment,
  kStale,
  kShared
};

// Those of a network that is a worker's.
template <class Network, class Visitor>
void visit_own_network(std::size_t n, const std::string& name, Network& network, Visitor& visitor) {
  visitor.parameters(n, ParameterPart::kWeights, network.weights);
  visitor.parameters(n, ParameterPart::kOptimiserArrays, network.optimiser_arrays);
  visitor.parameters(n, ParameterPart::kMoving, network.moving);
  visitor.number(name + ".updates", network.counters.updates);
  visitor.number(name + ".beta_1_power", network.counters.beta_1_power);
  visitor.number(name + ".beta_2_power", network.counters.beta_2_power);
  visitor.number(name + ".rate_scale", network.learning_rate.scale);
  visitor.number(name + ".rate_best", network.learning_rate.seen.best);
  visitor.number(name + ".rate_epochs", network.learning_rate.seen.epochs);
  visitor.number(name + ".rate_waited", network.learning_rate.seen.waited);
  visitor.number(name + ".rate_cooling", network.learning_rate.cooling);
}

template <class Worker, class Visitor>
void visit_worker(std::size_t i, Worker& worker, Visitor& visitor) {
  const std::string name = "worker." + std::to_string(i) + ".";
  visitor.number(name + "turns", worker.turns);
  const std::array networks{&worker.generator, &worker.discriminator};
  for (std::size_t n = 0; n < networks.size(); ++n) {
    visit_own_network(n, name + kNetworkNames[n], *networks[n], visitor);
    visitor.parameters(n, ParameterPart::kMoment, worker.moment[n]);
    visitor.parameters(n, ParameterPart::kStale, worker.stale[n]);
  }
}

// The last fields of visit_state().
template <class State, class Visitor>
void visit_optional_parts(State& state, Visitor& visitor) {
  visitor.perhaps("stop.loss_sum", state.stopping, [&](auto& stopping) {
    visitor.number("stop.loss_sum", stopping.loss_sum);
    visitor.number("stop.loss_steps", stopping.loss_steps);
    visitor.number("stop.smoothed", stopping.smoothed);
    visitor.number("stop.best", stopping.seen.best);
    visitor.number("stop.epochs", stopping.seen.epochs);
    visitor.number("stop.waited", stopping.seen.waited);
  });
  visitor.perhaps("outer.steps", state.outer, [&](auto& outer) {
    std::uint64_t steps = state.iteration;  // an iteration is an outer step
    visitor.number("outer.steps", steps);
    for (std::size_t n = 0; n < outer.velocity.size(); ++n) {
      visitor.parameters(n, ParameterPart::kOuterVelocity, outer.velocity[n]);
    }
  });
  visitor.perhaps("turns.next", state.turns, [&](auto& turns) {
    for (std::size_t i = 0; i < turns.next.words.size(); ++i) {
      visitor.number(i == 0 ? "turns.next" : "turns.next_" + std::to_string(i),
                     turns.next.words[i]);
    }
    visitor.hash("turns.order", turns.order);
    visitor.workers("turns.workers", turns.workers,
                    [&](std::size_t i, auto& worker) { visit_worker(i, worker, visitor); });
  });
  visitor.perhaps("mean.updates", state.mean, [&](auto& mean) {
    visitor.number("mean.updates", mean.updates);
    const std::size_t n = state.result_number();
    visitor.parameters(n, ParameterPart::kMeanWeights, mean.network.weights);
    visitor.parameters(n, ParameterPart::kMeanMoving, mean.network.moving);
  });
  visitor.perhaps("rounds.before", state.shared, [&](auto& shared) {
    std::uint64_t before = state.slot;  // a copy: the part needs a field with a name
    visitor.number("rounds.before", before);
    for (std::size_t n = 0; n < shared.values.size(); ++n) {
      visitor.parameters(n, ParameterPart::kShared, shared.values[n]);
    }
  });
}

// No schedule has more slots.
inline constexpr std::size_t kMostSlots = 256;

// Calls, for every field in order, one of
//   visitor.parameters(std::size_t network, ParameterPart, vector<float>&)
//   visitor.scales(vector<vector<int16_t>>&)
//   visitor.number(const std::string& name, T&), T one of uint64_t, uint32_t, double
//   visitor.text(const std::string& name, std::string&)
//   visitor.hash(const std::string& name, Hash128&)
//   visitor.workers(const std::string& name, vector<WorkerState>&, each), where each(std::size_t,
//     WorkerState&) calls the visitor for that worker's fields
//   visitor.perhaps(const std::string& first, optional<Struct>&, each), where each(Struct&) calls
//     the visitor for its fields, of which the first one has that name
// with const references where State is const. Names are unique.
template <class State, class Visitor>
void visit_state(State& state, Visitor& visitor) {
  const std::array networks{&state.generator, &state.discriminator};
  const auto name = [](std::size_t n, const char* field) {
    return std::string(kNetworkNames[n]) + "." + field;
  };
  for (std::size_t n = 0; n < networks.size(); ++n) {
    visitor.parameters(n, ParameterPart::kWeights, networks[n]->weights);
  }
  for (std::size_t n = 0; n < networks.size(); ++n) {
    auto& counters = networks[n]->counters;
    visitor.parameters(n, ParameterPart::kOptimiserArrays, networks[n]->optimiser_arrays);
    visitor.number(name(n, "updates"), counters.updates);
    visitor.number(name(n, "beta_1_power"), counters.beta_1_power);
    visitor.number(name(n, "beta_2_power"), counters.beta_2_power);
  }
  for (std::size_t n = 0; n < networks.size(); ++n) {
    visitor.parameters(n, ParameterPart::kMoving, networks[n]->moving);
  }
  visitor.scales(state.scales);
  for (std::size_t n = 0; n < networks.size(); ++n) {
    auto& rate = networks[n]->learning_rate;
    visitor.number(name(n, "rate_scale"), rate.scale);
    visitor.number(name(n, "rate_best"), rate.seen.best);
    visitor.number(name(n, "rate_epochs"), rate.seen.epochs);
    visitor.number(name(n, "rate_waited"), rate.seen.waited);
    visitor.number(name(n, "rate_cooling"), rate.cooling);
    visitor.number(name(n, "epoch_loss"), state.epoch_loss[n]);
    visitor.number(name(n, "epoch_loss_steps"), state.epoch_loss_steps[n]);
  }
  visitor.number("empty_iterations", state.empty_iterations);
  visitor.number("seed", state.seed);
  visitor.number("epoch", state.epoch);
  visitor.number("epoch_events", state.epoch_events);
  visitor.number("iteration", state.iteration);
  visitor.number("slot", state.slot);
  visitor.number("micro_batch", state.micro_batch);
  visitor.number("micro_batches", state.micro_batches);
  visitor.number("ledger_events", state.ledger_events);
  visitor.number("ledger_sum", state.ledger_sum);
  visitor.text("numerics_class", state.numerics_class);
  visitor.hash("data_fingerprint", state.data_fingerprint);
  visit_optional_parts(state, visitor);
}

// Hands every field of visit_state() to an archive (runtime/base/fields.h). Arrays travel as they
// stand in memory, little-endian float32.
template <class Archive>
struct StateArchive {
  static_assert(std::endian::native == std::endian::little);
  static constexpr std::size_t kMostName = 4096;

  Archive& archive;

  void parameters(std::size_t network, ParameterPart, auto& values) {
    archive.floats(kNetworkNames[network], values);
  }
  void scales(auto& slots) {
    archive.list("scales", slots, kMostSlots, [](auto& of_slots, auto& slot) {
      of_slots.list("slot", slot, SIZE_MAX,
                    [](auto& exponents, auto& exponent) { exponents.integer("", exponent); });
    });
  }
  template <class T>
  void number(const std::string& name, T& value) {
    if constexpr (std::floating_point<T>) {
      archive.real(name, value);
    } else {
      archive.number(name, value);
    }
  }
  void text(const std::string& name, auto& value) { archive.text(name, value, kMostName); }
  void hash(const std::string& name, auto& value) { archive.hash(name, value); }
  void workers(const std::string& name, auto& values, auto) {
    archive.list(name, values, kMostWorkersInTurns);
  }
  template <class Optional>
  void perhaps(const std::string& first, Optional& value, auto each) {
    bool is_there = value.has_value();
    archive.flag(first, is_there);
    if constexpr (!std::is_const_v<Optional>) {
      value.reset();
      if (is_there) value.emplace();
    }
    if (value) each(*value);
  }
};

template <class Archive>
void fields(Archive& archive, runtime::Like<WorkerState> auto& worker) {
  StateArchive<Archive> visitor{archive};
  visit_worker(0, worker, visitor);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<TrainingState> auto& state) {
  StateArchive<Archive> visitor{archive};
  visit_state(state, visitor);
}

// Sound means: optimisers that keep whole arrays of the weights' size, workers that have had the
// turns before the next step, and a slot of the schedule. Sizes are not compared with a model here:
// only a caller that has the model can do that.
const char* fault_of(const TrainingState& state);

}  // namespace troupe::pipeline
