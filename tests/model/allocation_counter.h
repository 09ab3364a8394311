#pragma once

// Replaces operator new of the test program it is linked into by one that counts.

#include <cstdint>

namespace troupe::model {

// By operator new, in all threads, since the program began.
std::int64_t allocations_so_far();
// What they asked for, freed since or not.
std::int64_t allocated_bytes_so_far();

}  // namespace troupe::model
