#pragma once

// The device that tests compute on: OpenCL's driver for the processor (PoCL), or the one that the
// variable TROUPE_DEVICE names, as a report on a card has it (tests/main/device_report).

#include <cstdlib>
#include <string>

namespace troupe {

inline std::string tested_device() {
  const char* const word = std::getenv("TROUPE_DEVICE");
  return word == nullptr ? "opencl:0" : word;
}

}  // namespace troupe
