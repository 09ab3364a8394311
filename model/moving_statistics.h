#pragma once

// Moving statistics of batch normalisation, which inference normalises by.

#include <span>
#include <vector>

#include "model/network.h"

namespace troupe::model {

// The momentum of each tensor of layout.moving: that of the batch normalisation it belongs to.
std::vector<double> moving_momenta(const NetworkDescription& network,
                                   const ParameterLayout& layout);

// moving = float(momentum) x moving + float(1 - momentum) x batch, in float. As many of both.
void update_moving(double momentum, std::span<const float> batch, std::span<float> moving);

}  // namespace troupe::model
