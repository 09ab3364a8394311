#pragma once

// Where the tensors that a step of workers contributes stand in a state. Pure; any thread.

#include <cstddef>
#include <span>

#include "model/gan.h"
#include "pipeline/steps/state_layout.h"

namespace troupe::pipeline {

// The network that a tensor is of, by its role; the discriminator, of losses and counts.
constexpr std::size_t network_of(model::ContributionTensor::Role role) {
  using Role = model::ContributionTensor::Role;
  const bool generator = role == Role::kGeneratorGradient || role == Role::kGeneratorOptimiser ||
                         role == Role::kGeneratorMoving;
  return generator ? kGenerator : kDiscriminator;
}

// The numbers of a state that a tensor of a step of kWorkers is of: weights, an array of the
// optimiser or moving statistics. Empty for losses and counts. `state` may be const.
template <class State>
auto values_of(const StateLayout& layout, State& state, const model::ContributionTensor& tensor) {
  using Role = model::ContributionTensor::Role;
  const std::size_t number = network_of(tensor.role);
  const model::ParameterLayout& parameters = layout.networks[number].parameters;
  auto& network = number == kGenerator ? state.generator : state.discriminator;
  const auto index = static_cast<std::size_t>(tensor.index);
  const auto size = static_cast<std::size_t>(tensor.size);
  const auto piece = [size](auto& values, std::int64_t offset) {
    return std::span(values).subspan(static_cast<std::size_t>(offset), size);
  };
  switch (tensor.role) {
    case Role::kGeneratorGradient:
    case Role::kDiscriminatorGradient:
      return piece(network.weights, parameters.weights.at(index).offset);
    case Role::kGeneratorOptimiser:
    case Role::kDiscriminatorOptimiser: {
      const std::size_t tensors = parameters.weights.size();
      const auto array = static_cast<std::int64_t>(index / tensors);
      return piece(network.optimiser_arrays,
                   array * parameters.weights_size + parameters.weights[index % tensors].offset);
    }
    case Role::kGeneratorMoving:
    case Role::kDiscriminatorMoving:
      return piece(network.moving, parameters.moving.at(index).offset);
    case Role::kLoss:
    case Role::kEmptyImages:
    case Role::kGeneratorShares:
    case Role::kDiscriminatorShares:
      break;
  }
  return std::span(network.weights).first(0);
}

}  // namespace troupe::pipeline
