#pragma once

// Whether the networks of a topology fit: layers, each other, the losses.

#include <optional>

#include "config/codec.h"
#include "model/gan.h"

namespace troupe::config {

// Where the network is described whose outputs have losses: "model.discriminator", or
// "model.network" of a task of one network. In words: "the discriminator".
std::string judge_path(const model::GanDescription& gan);
std::string judge_name(const model::GanDescription& gan);

// Problems at the places remembered for "model.generator.layers.INDEX" and so on. Both networks
// must have layers, the discriminator an input, and there must be losses. The discriminator reads
// images as the data have them, of one channel.
void check_networks(const model::GanDescription& gan, Reader& reader);

// Conditions drawn for fakes are energies: problems at train.fake_conditions when the model asks
// for more.
void check_fake_conditions(const model::GanDescription& gan, Reader& reader);

// The exponent to which the cells of the image are summed by the output of a loss whose target is
// taken before any power: the product of the `power` layers between the image and its `sum` or
// `angle`. None for other targets and for outputs that are made in another way.
std::optional<double> exponent_of_cells(const model::NetworkDescription& discriminator,
                                        const model::LossTerm& term);

}  // namespace troupe::config
