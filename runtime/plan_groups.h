#pragma once

// The wiring of a run for people, equal actors and links told together: as many lines for 64 nodes
// as for two.

#include <string>

#include "runtime/plan.h"

namespace troupe::runtime {

// As print() (plan.h) has it, but that actors, and nodes, whose names differ by a number only stand
// in one line ("replica.0..63"), and so do links that differ in nothing else, with their count. The
// bounds are those of each link.
std::string print_groups(const Plan& plan);

}  // namespace troupe::runtime
