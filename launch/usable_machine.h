#pragma once

// How much of this machine a process may use, which is what there is but for what limits take from
// it, and how much this one does.

#include <cstdint>

namespace troupe::launch {

// Bytes.
struct UsableMemory {
  double machine = 0;  // of all its processes together, as of a container
  double process = 0;  // of each: not more than the limit set on its address space
};
UsableMemory usable_memory();

// Memory that this process holds now; 0 if that cannot be known.
std::int64_t resident_bytes();

// Threads that can compute at once; at least 1.
int usable_processors();

}  // namespace troupe::launch
