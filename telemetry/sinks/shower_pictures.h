#pragma once

// Makes pictures and histograms for TensorBoard of what docs/watching.md calls "showers".

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "telemetry/sinks/png.h"
#include "telemetry/sinks/tensorboard_event.h"

namespace troupe::telemetry {

struct ShowerPictures {
  // By name, such as "100 GeV". Data are above, generated showers below. From left to right stands
  // the energy summed along z, along y and along x. Brightness is the logarithm of the energy, over
  // four decades below the brightest pixel of both.
  std::vector<std::pair<std::string, Image>> images;
  // "hits/data", "hits/generated", ...
  std::vector<std::pair<std::string, Histogram>> histograms;
};

// Cells outside the space are left out. kData: the JSON is not as it should be.
runtime::Result<ShowerPictures> shower_pictures(std::string_view json);

}  // namespace troupe::telemetry
