#pragma once

// Pictures as PNG (W3C Portable Network Graphics, second edition): 8 bits a sample, no filters, one
// chunk of data.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::telemetry {

// Rows from the top, pixels from the left.
struct Image {
  std::uint32_t width = 0, height = 0;  // each in 1 to 16384
  std::uint32_t channels = 1;           // 1: grey, 3: red, green, blue
  std::vector<std::uint8_t> samples;    // width * height * channels
};

// kInternal: sizes are beyond their limits or do not fit together, or there is no memory.
runtime::Result<std::string> png(const Image& image);

}  // namespace troupe::telemetry
