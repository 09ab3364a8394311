#pragma once

// The way in which work on many events tells its progress.

#include <cstdint>
#include <functional>

#include "runtime/base/error.h"

namespace troupe::pipeline {

// Gets the number of events done and of all events. An Error stops the work, which leaves nothing
// behind and ends with it.
using Progress = std::function<runtime::Result<void>(std::uint64_t done, std::uint64_t total)>;

}  // namespace troupe::pipeline
