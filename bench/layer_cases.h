#pragma once

// The layers that bench_layers measures: each a network of a layer or two, as topologies have them,
// in the sizes of the zoo where it has the layer.

#include <cstdint>
#include <string>
#include <vector>

#include "model/network.h"

namespace troupe::bench {

struct LayerCase {
  std::string name;
  std::int64_t events = 0;  // of a micro-batch; even
  std::string network;      // {input: [...], layers: [...]}, on one line
};

const std::vector<LayerCase>& layer_cases();

// CHECKs that it is a network.
model::NetworkDescription network_of(const LayerCase& layer);

}  // namespace troupe::bench
