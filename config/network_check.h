#pragma once

// Whether the networks of a topology fit: layers, each other, the losses.

#include "config/codec.h"
#include "model/gan.h"

namespace troupe::config {

// Problems at the places remembered for "model.generator.layers.INDEX" and so on. Both networks
// must have layers, the discriminator an input, and there must be losses.
void check_networks(const model::GanDescription& gan, Reader& reader);

// The network as it is compiled: with its name and input.
model::NetworkDescription complete_generator(const model::GanDescription& gan);

}  // namespace troupe::config
