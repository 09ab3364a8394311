#pragma once

// The limits that Linux's control groups, those of containers and batch systems, set a process.

#include <filesystem>
#include <optional>

namespace troupe::launch {

// Nothing where there is no limit, or none that can be read.
struct ControlGroupLimits {
  std::optional<double> memory_bytes;
  std::optional<double> processors;  // as much as so many, over a time
};

// For this process: the tightest of the groups it is in, those around them among them; version 1
// and 2 of the interface. `system`: the root folder, from which proc/self/ and the mounted folders
// are looked up.
ControlGroupLimits control_group_limits(const std::filesystem::path& system = "/");

}  // namespace troupe::launch
