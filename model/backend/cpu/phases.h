#pragma once

// How a kernel meets an upsampled image along one axis: the arithmetic of upsampled_convolution.h.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/operation.h"

namespace troupe::model::cpu {

// The outputs u c + phase + before for `count` values of c from `first` on; each reads the coarse
// cells c to c + taps - 1, those outside the image being zero.
struct Phase {
  std::int64_t first = 0, count = 0, taps = 0;
};

struct AxisPhases {
  std::int64_t factor = 1, kernel = 1, before = 0;
  std::int64_t cells = 0;  // of the coarse image
  std::vector<Phase> phases;
  std::int64_t most_taps = 0, all_taps = 0;  // of a phase, of all

  AxisPhases(const ConvolutionGeometry& g, std::size_t axis)
      : factor(g.upsample[axis]),
        kernel(g.kernel[axis]),
        before(g.pad_before[axis]),
        cells(g.in[axis]) {
    for (std::int64_t phase = 0; phase < factor; ++phase) {
      const std::int64_t first = -((phase + before) / factor);
      const std::int64_t place = output(phase, first);
      const std::int64_t count = place < g.out[axis] ? (g.out[axis] - 1 - place) / factor + 1 : 0;
      phases.push_back({first, count, (phase + kernel - 1) / factor + 1});
      most_taps = std::max(most_taps, phases.back().taps);
      all_taps += phases.back().taps;
    }
  }

  std::int64_t output(std::int64_t phase, std::int64_t c) const {
    return factor * c + phase + before;
  }
  // The coarse tap that tap k of the kernel belongs to.
  std::int64_t coarse_tap(std::int64_t phase, std::int64_t k) const { return (phase + k) / factor; }
  const Phase& at(std::int64_t phase) const { return phases[static_cast<std::size_t>(phase)]; }

  // Zero cells before the image that outputs read, and cells from the first of these to the last
  // that any output reads.
  std::int64_t lead() const {
    std::int64_t most = 0;
    for (const Phase& phase : phases) {
      if (phase.count > 0) most = std::max(most, -phase.first);
    }
    return most;
  }
  std::int64_t length() const {
    std::int64_t end = cells;
    for (const Phase& phase : phases) {
      if (phase.count > 0) end = std::max(end, phase.first + phase.count - 1 + phase.taps);
    }
    return lead() + end;
  }
  // Places from the first zero cell that outputs may stand at.
  std::int64_t output_length() const {
    std::int64_t end = 0;
    for (const Phase& phase : phases) {
      if (phase.count > 0) end = std::max(end, phase.first + phase.count);
    }
    return lead() + end;
  }
};

}  // namespace troupe::model::cpu
