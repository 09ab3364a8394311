#pragma once

#include <cstdint>

#include "pipeline/steps/roster.h"

namespace troupe::pipeline {

// The member that makes steps and stays, and whose address begins most like that of `member`. Where
// several are as near, or nobody's address is known, it is the first, which leads and sends
// snapshots anyway. If all are about to leave they count as staying.
std::uint32_t nearest_teacher(const Roster& roster, std::uint32_t member);

// Puts the member into the ring behind those whose addresses begin most like its own, also where
// they have left or are lost: a site keeps its place.
void put_in_ring(Roster& roster, std::uint32_t member);

}  // namespace troupe::pipeline
