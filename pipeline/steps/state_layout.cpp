#include "pipeline/steps/state_layout.h"

#include "model/moving_statistics.h"

namespace troupe::pipeline {
namespace {

StateLayout::Network network_layout(const model::Program& program) {
  return {program.parameters(), model::moving_momenta(program.network(), program.parameters())};
}

}  // namespace

StateLayout::StateLayout(const model::Gan& gan)
    : networks{network_layout(gan.generator()), network_layout(gan.discriminator())} {
  for (const model::SlotKind slot : model::kSlotKinds) {
    contributions[static_cast<std::size_t>(slot)] = gan.contributions(slot);
  }
  for (const model::LossTerm& term : gan.description().losses) {
    loss_weights.push_back(term.weight);
    of_fakes.push_back(term.kind == model::LossKind::kGradientPenalty);
  }
}

}  // namespace troupe::pipeline
