#pragma once

// A trained model as the writers of files for other programs take it.

#include <string>
#include <utility>
#include <vector>

#include "model/gan.h"
#include "model/network.h"
#include "model/physics/observables.h"
#include "pipeline/steps/training_state.h"

namespace troupe::pipeline {

// The state fits the description; both outlive this.
struct TrainedModel {
  const model::GanDescription& gan;
  const TrainingState& state;
  model::ImageUnits units;  // of the generator's images
  // What is to be known of it, name and value: hashes, data, licence. Every file has them.
  std::vector<std::pair<std::string, std::string>> facts{};
};

// One parameter of a network with its values.
struct NamedParameter {
  const model::ParameterTensor* tensor;
  const float* values;  // tensor->size of them
};

// The parameters of a network, found by layer and role.
class NetworkParameters {
 public:
  // Both outlive it; the network is without problems and fits the state.
  NetworkParameters(const model::NetworkDescription& network, const NetworkState& state);

  const model::NetworkDescription& network() const { return network_; }
  const model::NetworkShapes& shapes() const { return shapes_; }
  // Trainable ones in the order of layers, then moving statistics in the same.
  const std::vector<NamedParameter>& all() const { return all_; }
  // Null: the layer has none of this role.
  const NamedParameter* find(int layer, model::ParameterRole role) const;

 private:
  const model::NetworkDescription& network_;
  model::NetworkShapes shapes_;
  model::ParameterLayout layout_;
  std::vector<NamedParameter> all_;
};

}  // namespace troupe::pipeline
