#pragma once

// Pictures as PNG (W3C Portable Network Graphics, second edition): grey, 8 bits a pixel, no
// filters, one chunk of data.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::telemetry {

// Rows from the top, pixels from the left.
struct Image {
  std::uint32_t width = 0, height = 0;  // neither is 0
  std::vector<std::uint8_t> samples;    // width * height; CHECKed
};

// kInternal: there is no memory.
runtime::Result<std::string> png(const Image& image);

}  // namespace troupe::telemetry
