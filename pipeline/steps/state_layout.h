#pragma once

// The meaning of a TrainingState's numbers: a model reduced to the tables that a step and a
// checkpoint need, so that neither depends on the way it is computed.

#include <array>
#include <string>
#include <vector>

#include "model/gan.h"
#include "model/network.h"
#include "model/shared_statistics.h"

namespace troupe::pipeline {

// The order networks have in states, checkpoints and random streams. The network of a task without
// fakes stands in the discriminator's place, and the generator is empty.
inline constexpr std::size_t kGenerator = 0;
inline constexpr std::size_t kDiscriminator = 1;
inline constexpr std::array<const char*, 2> kNetworkNames{"generator", "discriminator"};

// The network that the optimiser of a step updates.
constexpr std::size_t updated_network(model::SlotKind slot) {
  return slot == model::SlotKind::kG ? kGenerator : kDiscriminator;
}

struct StateLayout {
  StateLayout() = default;
  StateLayout(const model::Gan& gan);  // not explicit: a model stands for its tables

  struct Network {
    model::ParameterLayout parameters;
    std::vector<double> momentum;  // of the batch normalisation, per tensor of parameters.moving
    std::vector<model::SharedNorm> shared_norms;
  };
  std::array<Network, 2> networks;
  // By SlotKind; empty for those of another task.
  std::array<model::ContributionLayout, model::kSlotKinds.size()> contributions;
  std::vector<double> loss_weights;  // in the order of GanDescription::losses
  std::vector<bool> of_fakes;        // likewise: whether a term acts only in steps that make fakes
  // The rounds of a step, by its SlotKind (model/shared_statistics.h).
  std::array<std::vector<model::StatisticsRound>, model::kSlotKinds.size()> rounds;

  const model::ContributionLayout& of(model::SlotKind slot) const {
    return contributions[static_cast<std::size_t>(slot)];
  }
};

}  // namespace troupe::pipeline
