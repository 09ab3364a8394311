#pragma once

// Random networks with every kind of layer, fan-out and several outputs, from a seed.

#include "model/network.h"

namespace troupe::model {

// Has no problems. Images are small and have two or three axes.
NetworkDescription random_network(std::uint64_t seed);

}  // namespace troupe::model
