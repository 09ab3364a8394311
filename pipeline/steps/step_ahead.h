#pragma once

// Which work may overlap a reduction. Follows from what the kinds of steps read and write
// (model::slot_access), so it holds for any schedule. Pure; any thread.

#include <cstdint>
#include <vector>

#include "model/gan.h"

namespace troupe::pipeline {

// What of a step may be computed before the step in front of it is applied, with the same bits.
enum class StepAhead : std::uint8_t {
  kNothing,
  kPreparation,  // StepComputer::prepare
  kAll,          // its whole contribution, integers included; not its header, which carries the
                 // hash of the state
};

// Of the step behind schedule position `slot`; behind the last one comes the next iteration's
// first. kAll is only for a step of another position: scales belong to a position, and those of
// its own are not known before the step in front is applied.
StepAhead step_ahead(const std::vector<model::SlotKind>& schedule, std::uint32_t slot);

// Whether any step of the schedule may be computed as a whole before the one in front is applied:
// then contributions of two steps are kept.
bool keeps_two_steps(const std::vector<model::SlotKind>& schedule);

}  // namespace troupe::pipeline
