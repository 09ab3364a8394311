#pragma once

// Showers in int8 (model/int8.h).

#include <cstddef>
#include <memory>
#include <span>

#include "model/backend.h"
#include "model/gan.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct Int8Generation {
  std::unique_ptr<model::Backend> backend;  // for one ShowerMaker
  std::size_t convolutions = 0, in_int8 = 0;
};

// How a ShowerMaker computes this generator in int8. Ranges are measured by 64 showers of 5 to 500
// GeV at 60 to 120 degrees, always the same for the same weights. A convolution is computed in int8
// unless it alone changes the cells of 16 of them, or a column that is made with them, by more than
// a twentieth of the sum of their magnitudes: cells whose energies differ by orders of magnitude,
// as in the last layers of gan3d_25, have no place in eight bits. The team has prepared its threads
// for a backend of the host.
runtime::Result<Int8Generation> prepare_int8(const model::GanDescription& model,
                                             std::span<const float> weights,
                                             std::span<const float> moving,
                                             runtime::ThreadTeam& team);

}  // namespace troupe::pipeline
