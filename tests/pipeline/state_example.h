#pragma once

// A model of 67 parameters, moving statistics included, with every kind of state, and the reduction
// of a step without actors or networks that run: contributions are random numbers.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/steps/state_layout.h"
#include "pipeline/steps/step_record.h"
#include "pipeline/steps/training_state.h"

namespace troupe::pipeline {

struct StateExample {
  StateLayout layout;
  TrainingOptions options;
};

// Generator: dense, batch norm (momentum 0.9), dense. Discriminator: dense, batch norm (0.75),
// dense, relu; losses "generation" (weight 3) of the last dense and "energy" (0.5) of the relu.
// Micro-batches of 2 events, M = 4, schedule d_real, d_fake, g, g, epochs of 3 iterations, Adam and
// RMSprop with momentum.
StateExample state_example();

// The initial state with a value of its own in every number, so that one that is lost or swapped
// shows.
TrainingState filled_state(const StateExample& example);

// One contribution vector per micro-batch, of mixed signs and magnitudes; empty_images is 0.
std::vector<std::vector<float>> random_contributions(const StateExample& example,
                                                     model::SlotKind slot, std::uint32_t stream);

// How a step is shared out. Results must not depend on it.
struct Sharing {
  std::vector<std::vector<std::uint32_t>> members{{0, 1, 2, 3}};  // their micro-batches, in order
  std::int64_t segment_bytes = 1 << 20;
};

// All of a step up to its record: quantise, add, combine, judge, once again if flagged. CHECKs that
// the verdict is to commit. Event ids are micro_batch x b + i.
StepRecord reduce(const StateExample& example, const TrainingState& state,
                  const std::vector<std::vector<float>>& contributions,
                  const Sharing& sharing = {});

}  // namespace troupe::pipeline
