#pragma once

// The way out when handlers do not return.

#include "runtime/base/log.h"
#include "runtime/node/node.h"

namespace troupe::launch {

// Threads of end.abandoned still run, on objects that must not go away: says so and ends the
// process with the exit code of end.error.
[[noreturn]] void abandon(const runtime::NodeEnd& end, const runtime::Log& log);

}  // namespace troupe::launch
