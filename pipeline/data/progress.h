#pragma once

// How work on many events tells how far it is.

#include <cstdint>
#include <functional>

#include "runtime/base/error.h"

namespace troupe::pipeline {

// Told how many of how many events are done. An Error stops the work, which then leaves nothing
// behind and ends in it.
using Progress = std::function<runtime::Result<void>(std::uint64_t done, std::uint64_t total)>;

}  // namespace troupe::pipeline
