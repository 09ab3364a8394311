#pragma once

// What docs/watching.md calls "showers" as pictures and histograms for TensorBoard.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "telemetry/histogram.h"
#include "telemetry/sinks/png.h"

namespace troupe::telemetry {

struct ShowerPictures {
  // By name, such as "100 GeV". Data above, generated below; from left to right the energy summed
  // along z, along y and along x. Brightness is the logarithm of the energy over four decades below
  // the brightest pixel of both.
  std::vector<std::pair<std::string, Image>> images;
  // "hits/data", "hits/generated", ...
  std::vector<std::pair<std::string, Histogram>> histograms;
};

// kData: not what was expected; cells that lie outside the space are left out.
runtime::Result<ShowerPictures> shower_pictures(std::string_view json);

}  // namespace troupe::telemetry
