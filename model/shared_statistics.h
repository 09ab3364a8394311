#pragma once

// Steps whose micro-batches share the statistics of batch norm (BatchNorm::sync).
//
// Such a layer normalises by the mean and variance of the events of all micro-batches, and its
// gradient flows through these. So a step of the schedule is made in rounds. In each of them every
// micro-batch computes up to one such layer and gives its share there (model/shared_norm.h), and
// the sum over all is taken. The forward pass has one round for each layer, from the first to the
// last, and the backward pass one from the last to the first. Behind them the step itself
// contributes as any other does.
//
// Only Gan knows rounds. All others take a round for a step of its own, of kind
// SlotKind::kStatistics: its sums are exact, and it is applied to the state, where it leaves what
// it has found for the rounds behind it. So rounds are redone, replayed and taught as steps are,
// and their sums depend on the placement no more than those of gradients.
//
// A stream that has computed a round of the same micro-batches goes on from there. Else a round
// begins at the inputs.

#include <cstdint>
#include <vector>

#include "model/gan.h"

namespace troupe::model {

// In their order (Gan::rounds() has those of a model). None where no network that the step trains
// through has such a layer.
std::vector<StatisticsRound> statistics_rounds(const GanDescription& gan, SlotKind slot);

// The schedule with the rounds of each step in front of it.
std::vector<SlotKind> with_rounds(const GanDescription& gan, const std::vector<SlotKind>& schedule);

// The computation at a place of a schedule with rounds.
struct ScheduledWork {
  SlotKind slot = SlotKind::kDReal;  // the step, or the one that the round is of
  int round = -1;                    // -1: the step itself
  std::uint32_t number = 0;          // of the step, in the schedule without rounds
};
ScheduledWork work_at(const std::vector<SlotKind>& schedule, std::uint32_t place);

}  // namespace troupe::model
