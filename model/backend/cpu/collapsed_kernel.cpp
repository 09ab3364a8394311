#include "model/backend/cpu/collapsed_kernel.h"

#include <algorithm>

namespace troupe::model::cpu {
namespace {

// Calls use(i, j, k) for all in order.
template <class Use>
void for_each(std::int64_t x, std::int64_t y, std::int64_t z, const Use& use) {
  for (std::int64_t i = 0; i < x; ++i) {
    for (std::int64_t j = 0; j < y; ++j) {
      for (std::int64_t k = 0; k < z; ++k) use(i, j, k);
    }
  }
}

// Taps of the kernel that collapse into coarse tap `j`: [begin, end).
struct Range {
  std::int64_t begin, end;
};
Range taps_of(const AxisPhases& axis, std::int64_t phase, std::int64_t j) {
  return {std::max<std::int64_t>(0, j * axis.factor - phase),
          std::min(axis.kernel, (j + 1) * axis.factor - phase)};
}

void add(const float* from, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(from[i]);
}

void round_into(const double* sums, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(sums[i]);
}

}  // namespace

CollapsedKernel::CollapsedKernel(const ConvolutionGeometry& g)
    : axes_{AxisPhases(g, 0), AxisPhases(g, 1), AxisPhases(g, 2)},
      block_(g.in_channels * g.out_channels) {
  for_each(axes_[0].factor, axes_[1].factor, axes_[2].factor,
           [&](std::int64_t x, std::int64_t y, std::int64_t z) {
             first_taps_.push_back(taps_);
             taps_ += axes_[0].at(x).taps * axes_[1].at(y).taps * axes_[2].at(z).taps;
           });
}

// Each coarse tap is the sum of the fine taps that read the same cell. The sums are in double and
// rounded once.
void CollapsedKernel::collapse(const float* kernel, double* sums, float* collapsed) const {
  const auto collapse_phase = [&](std::int64_t fx, std::int64_t fy, std::int64_t fz) {
    const auto collapse_tap = [&](std::int64_t jx, std::int64_t jy, std::int64_t jz) {
      const Range x = taps_of(axes_[0], fx, jx), y = taps_of(axes_[1], fy, jy),
                  z = taps_of(axes_[2], fz, jz);
      std::fill_n(sums, block_, 0.0);
      for_each(x.end - x.begin, y.end - y.begin, z.end - z.begin,
               [&](std::int64_t i, std::int64_t j, std::int64_t k) {
                 const std::int64_t tap =
                     ((x.begin + i) * axes_[1].kernel + y.begin + j) * axes_[2].kernel + z.begin +
                     k;
                 add(kernel + tap * block_, block_, sums);
               });
      round_into(sums, block_, collapsed);
      collapsed += block_;
    };
    for_each(axes_[0].at(fx).taps, axes_[1].at(fy).taps, axes_[2].at(fz).taps, collapse_tap);
  };
  for_each(axes_[0].factor, axes_[1].factor, axes_[2].factor, collapse_phase);
}

// The transposed map: each fine tap takes part in one coarse tap of every phase, so its gradient is
// the sum of theirs.
void CollapsedKernel::expand(const float* collapsed, double* sums, float* dkernel) const {
  const auto expand_tap = [&](std::int64_t kx, std::int64_t ky, std::int64_t kz) {
    std::fill_n(sums, block_, 0.0);
    const auto add_phase = [&](std::int64_t fx, std::int64_t fy, std::int64_t fz) {
      const std::int64_t tap =
          (axes_[0].coarse_tap(fx, kx) * axes_[1].at(fy).taps + axes_[1].coarse_tap(fy, ky)) *
              axes_[2].at(fz).taps +
          axes_[2].coarse_tap(fz, kz);
      add(collapsed + place(fx, fy, fz) + tap * block_, block_, sums);
    };
    for_each(axes_[0].factor, axes_[1].factor, axes_[2].factor, add_phase);
    round_into(sums, block_, dkernel);
    dkernel += block_;
  };
  for_each(axes_[0].kernel, axes_[1].kernel, axes_[2].kernel, expand_tap);
}

}  // namespace troupe::model::cpu
