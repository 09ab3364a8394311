#pragma once

// The wiring of a run for people, equal actors and links told together: as many lines for 64 nodes
// as for two.

#include <string>

#include "runtime/plan.h"

namespace troupe::runtime {

// Like print() (plan.h), but actors and nodes whose names differ only by a number share one line
// ("replica.0..63"). Links that differ in nothing else share one line with their count; the bounds
// are those of each link.
std::string print_groups(const Plan& plan);

}  // namespace troupe::runtime
