#pragma once

// The files in RUN/showers, one for each step that was validated. Each holds what docs/watching.md
// calls "showers".

#include <cstdint>
#include <string>

#include "runtime/base/error.h"

namespace troupe::telemetry {

// "step-000000000088.json"
std::string showers_file_name(std::uint64_t step);

// The content of a step's file. kData: there is none, it cannot be read, or it is larger than any
// that a run writes.
runtime::Result<std::string> read_showers(const std::string& run_folder, std::uint64_t step);

}  // namespace troupe::telemetry
