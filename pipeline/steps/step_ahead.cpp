#include "pipeline/steps/step_ahead.h"

namespace troupe::pipeline {

StepAhead step_ahead(const std::vector<model::SlotKind>& schedule, std::uint32_t slot) {
  const std::size_t next = (slot + std::size_t{1}) % schedule.size();
  const model::SlotAccess access = model::slot_access(schedule[next]);
  const std::uint8_t changes = model::slot_access(schedule[slot]).writes;
  if ((access.reads & changes) == 0 && next != slot) return StepAhead::kAll;
  return (access.prepare_reads & changes) == 0 ? StepAhead::kPreparation : StepAhead::kNothing;
}

bool keeps_two_steps(const std::vector<model::SlotKind>& schedule) {
  for (std::uint32_t slot = 0; slot < schedule.size(); ++slot) {
    if (step_ahead(schedule, slot) == StepAhead::kAll) return true;
  }
  return false;
}

}  // namespace troupe::pipeline
