#pragma once

// Decides which work may overlap a reduction. The answer follows from what the kinds of steps read
// and write (model::slot_access), so it holds for any schedule. Pure; any thread.

#include <cstdint>
#include <vector>

#include "model/gan.h"

namespace troupe::pipeline {

// The part of a step that may be computed before the step in front of it is applied, with the same
// bits.
enum class StepAhead : std::uint8_t {
  kNothing,
  kPreparation,  // StepComputer::prepare
  kAll,          // its whole contribution, integers included; not its header, which carries the
                 // hash of the state
};

// The answer for the step behind schedule position `slot`; the first one of the next iteration
// follows the last one. Only a step of another position gets kAll: scales belong to a position, and
// the scales of the same position are not known before the step in front is applied.
StepAhead step_ahead(const std::vector<model::SlotKind>& schedule, std::uint32_t slot);

// True if some step of the schedule may be computed as a whole before the one in front is applied.
// Then contributions of two steps are kept.
bool keeps_two_steps(const std::vector<model::SlotKind>& schedule);

}  // namespace troupe::pipeline
