#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/steps/roster.h"

namespace troupe::pipeline {

// The members that make steps and stay, and whose address begins most like that of `member`;
// ascending, one at least. The first of them teaches it: where nobody's address is known that is
// the one that leads, and sends snapshots anyway. If all are about to leave they count as staying.
std::vector<std::uint32_t> nearest_members(const Roster& roster, std::uint32_t member);

}  // namespace troupe::pipeline
