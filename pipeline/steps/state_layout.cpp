#include "pipeline/steps/state_layout.h"

#include <variant>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

StateLayout::Network network_layout(const model::Program& program) {
  StateLayout::Network network{program.parameters(), {}};
  for (const model::ParameterTensor& tensor : network.parameters.moving) {
    const auto& layer = program.network().layers.at(static_cast<std::size_t>(tensor.layer));
    const auto* norm = std::get_if<model::BatchNorm>(&layer.kind);
    CHECK(norm != nullptr, "moving statistics of a layer without a momentum");
    network.momentum.push_back(norm->momentum);
  }
  return network;
}

}  // namespace

StateLayout::StateLayout(const model::Gan& gan)
    : networks{network_layout(gan.generator()), network_layout(gan.discriminator())} {
  using model::SlotKind;
  for (const SlotKind slot : {SlotKind::kDReal, SlotKind::kDFake, SlotKind::kG}) {
    contributions[static_cast<std::size_t>(slot)] = gan.contributions(slot);
  }
  for (const model::LossTerm& term : gan.description().losses) {
    loss_weights.push_back(term.weight);
  }
}

}  // namespace troupe::pipeline
