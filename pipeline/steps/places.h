#pragma once

// The places of newcomers, which are given to one process after another.

#include "pipeline/steps/roster.h"

namespace troupe::pipeline {

// Where a process is lost and nobody has a word for it any more, another one may come. Called
// whenever time has passed.
void await_others(Roster& roster);

}  // namespace troupe::pipeline
