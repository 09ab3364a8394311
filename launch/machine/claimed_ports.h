#pragma once

// Ports for a head that nobody has given any.

#include <cstdint>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// No other process of this program takes them while the claim is open, though nobody listens yet.
struct ClaimedPorts {
  std::uint16_t first = 0;
  runtime::Descriptor claim;
};

// The first of three neighbouring ports from 20000 on that nobody has or claims now. Other
// processes look from elsewhere on, and so does this one with another `turn`, as those of an
// earlier head may still dial it. kUsage: there are none, or no descriptor is left to look with.
runtime::Result<ClaimedPorts> claim_ports(std::uint32_t turn);

}  // namespace troupe::launch
