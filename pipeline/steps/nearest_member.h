#pragma once

#include <cstdint>

#include "pipeline/steps/roster.h"

namespace troupe::pipeline {

// The member that makes steps and stays, and whose address begins most like that of `member`. Where
// several are as near, or nobody's address is known, it is the first, which leads and sends
// snapshots anyway.
std::uint32_t nearest_member(const Roster& roster, std::uint32_t member);

}  // namespace troupe::pipeline
