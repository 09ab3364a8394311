#include "pipeline/leaving/trained_model.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace troupe::pipeline {

NetworkParameters::NetworkParameters(const model::NetworkDescription& network,
                                     const NetworkState& state)
    : network_(network),
      shapes_(model::infer_shapes(network)),
      layout_(model::layout_parameters(network, shapes_)) {
  CHECK(shapes_.problems.empty(), network.name);
  CHECK(static_cast<std::int64_t>(state.weights.size()) == layout_.weights_size &&
            static_cast<std::int64_t>(state.moving.size()) == layout_.moving_size,
        network.name);
  for (const auto& tensor : layout_.weights) {
    all_.push_back({&tensor, state.weights.data() + tensor.offset});
  }
  for (const auto& tensor : layout_.moving) {
    all_.push_back({&tensor, state.moving.data() + tensor.offset});
  }
}

const NamedParameter* NetworkParameters::find(int layer, model::ParameterRole role) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const NamedParameter& each) {
    return each.tensor->layer == layer && each.tensor->role == role;
  });
  return found == all_.end() ? nullptr : &*found;
}

}  // namespace troupe::pipeline
