#pragma once

// How work on many events tells how far it is.

#include <cstdint>
#include <functional>

namespace troupe::pipeline {

// Told how many of how many events are done; returns false to stop the work, which then leaves
// nothing behind and ends in an Error.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

}  // namespace troupe::pipeline
