#pragma once

// How much of this machine a process may use, with the limits that are set on it, and how much this
// one does use.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::launch {

// The limits that Linux's control groups, those of containers and batch systems, set a process.
// Nothing where there is no limit, or none that can be read.
struct ControlGroupLimits {
  std::optional<double> memory_bytes;
  std::optional<double> processors;  // as much as so many, over a time
};

// For this process: the tightest of the groups it is in, those around them among them; version 1
// and 2 of the interface. `system`: the root folder, from which proc/self/ and the mounted folders
// are looked up.
ControlGroupLimits control_group_limits(const std::filesystem::path& system = "/");

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
