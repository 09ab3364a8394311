#pragma once

// The kernel of a convolution collapsed for each phase of an upsampled image
// (upsampled_convolution.h), and the way back for its gradient.

#include <array>
#include <cstdint>
#include <vector>

#include "model/backend/cpu/phases.h"

namespace troupe::model::cpu {

class CollapsedKernel {
 public:
  explicit CollapsedKernel(const ConvolutionGeometry& g);

  const AxisPhases& axis(std::size_t i) const { return axes_[i]; }
  // The collapsed kernels of all phases: each (jx, jy, jz), with weights (in, out).
  std::int64_t taps() const { return taps_; }
  std::int64_t size() const { return taps_ * block_; }  // floats
  // Place of the first tap of a phase.
  std::int64_t first_tap(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return first_taps_[static_cast<std::size_t>((x * axes_[1].factor + y) * axes_[2].factor + z)];
  }
  // The same in floats.
  std::int64_t place(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return first_tap(x, y, z) * block_;
  }

  // `sums` has room for in_channels x out_channels.
  void collapse(const float* kernel, double* sums, float* collapsed) const;
  // dkernel from the gradients of all phases.
  void expand(const float* collapsed, double* sums, float* dkernel) const;

 private:
  std::array<AxisPhases, 3> axes_;
  std::int64_t block_;  // in_channels x out_channels
  std::vector<std::int64_t> first_taps_;
  std::int64_t taps_ = 0;
};

}  // namespace troupe::model::cpu
