#include "pipeline/steps/state_layout.h"

#include <utility>

#include "model/moving_statistics.h"

namespace troupe::pipeline {
namespace {

StateLayout::Network network_layout(const model::Program& program,
                                    std::vector<model::SharedNorm> shared_norms) {
  return {program.parameters(), model::moving_momenta(program.network(), program.parameters()),
          std::move(shared_norms)};
}

}  // namespace

StateLayout::StateLayout(const model::Gan& gan)
    : networks{network_layout(gan.generator(), gan.shared_norms(true)),
               network_layout(gan.discriminator(), gan.shared_norms(false))} {
  for (const model::SlotKind slot : model::kSlotKinds) {
    contributions[static_cast<std::size_t>(slot)] = gan.contributions(slot);
    rounds[static_cast<std::size_t>(slot)] = gan.rounds(slot);
  }
  for (const model::LossTerm& term : gan.description().losses) {
    loss_weights.push_back(term.weight);
    of_fakes.push_back(term.kind == model::LossKind::kGradientPenalty);
  }
}

}  // namespace troupe::pipeline
