#pragma once

// Random networks with every kind of layer, fan-out and several outputs, from a seed.

#include "model/network.h"

namespace troupe::model {

// Numbers of the condition that some of them have: whole, from 0 on.
inline constexpr std::int64_t kLabels = 3;

// Has no problems. Images are small and have one to three axes.
NetworkDescription random_network(std::uint64_t seed);

}  // namespace troupe::model
