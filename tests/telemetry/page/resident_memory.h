#pragma once

// What this process has in memory now. A sanitizer keeps there what was freed.

#include <cstddef>
#include <cstdio>

#include "runtime/base/error.h"

namespace troupe::telemetry {

inline std::size_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  CHECK(file != nullptr);
  unsigned long size = 0, resident = 0;
  CHECK(std::fscanf(file, "%lu %lu", &size, &resident) == 2);
  std::fclose(file);
  return resident * 4096;
}

}  // namespace troupe::telemetry
