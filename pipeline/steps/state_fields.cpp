#include "pipeline/steps/state_fields.h"

namespace troupe::pipeline {
namespace {

// An optimiser keeps any number of arrays, each of the weights' size.
bool has_whole_arrays(const NetworkState& network) {
  const std::size_t weights = network.weights.size();
  return weights == 0 ? network.optimiser_arrays.empty()
                      : network.optimiser_arrays.size() % weights == 0;
}

}  // namespace

const char* fault_of(const TrainingState& state) {
  if (!has_whole_arrays(state.generator) || !has_whole_arrays(state.discriminator)) {
    return "optimiser arrays that are not of the weights' size";
  }
  return state.slot < state.scales.size() ? nullptr : "a slot beyond the schedule";
}

}  // namespace troupe::pipeline
