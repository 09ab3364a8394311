#pragma once

// Ports for a head that nobody has given any.

#include <cstdint>

#include "runtime/base/error.h"

namespace troupe::launch {

// The first of three neighbouring ports from 20000 on that nobody has now. Other processes look
// from elsewhere on, and so does this one with another `turn`, as somebody may be about to open
// those of an earlier one. kUsage: there are none, or no descriptor is left to look with.
runtime::Result<std::uint16_t> free_ports(std::uint32_t turn);

}  // namespace troupe::launch
