#pragma once

// The planes of convolutions of upsampled images (upsampled_convolution.h).

#include <array>
#include <cstdint>

#include "model/backend/cpu/collapsed_kernel.h"
#include "model/backend/cpu/rearrange.h"

namespace troupe::model::cpu {

// Calls use(y, z) for every pair in order.
template <class Use>
void for_each_pair(std::int64_t y_end, std::int64_t z_end, const Use& use) {
  for (std::int64_t y = 0; y < y_end; ++y) {
    for (std::int64_t z = 0; z < z_end; ++z) use(y, z);
  }
}

// Planes with rows of one length for the coarse image, zero cells around it included, and for the
// outputs of a phase: output c stands at the place of coarse cell c.
struct CoarsePlanes {
  std::int64_t rows, row, positions, plane;

  // `in_lane` as of PlaneFormat.
  CoarsePlanes(const CollapsedKernel& kernel, std::int64_t in_lane)
      : rows(kernel.axis(1).length()),
        row(kernel.axis(2).length()),
        positions(whole_lanes(kernel.axis(1).output_length() * row, in_lane)),
        plane(whole_lanes(
            positions + (kernel.axis(1).most_taps - 1) * row + kernel.axis(2).most_taps - 1,
            in_lane)) {}

  // From one x plane of the image.
  void fill(const ConvolutionGeometry& g, const CollapsedKernel& kernel, const float* image,
            float* planes) const;
};

// One x plane of the output's derivative: the cells of phases (y, z), output c at place c + lead.
void fill_phase(const ConvolutionGeometry& g, const CollapsedKernel& kernel, std::int64_t fy,
                std::int64_t fz, std::array<std::int64_t, 2> lead, const Rearrangement& planes,
                const float* dy, float* to);

// Number of pairs (plane of outputs, coarse tap along x) that meet a plane of the image, over all
// phases.
double x_products(const ConvolutionGeometry& g, const AxisPhases& x);
// Number of products of all phases and taps along y and z, for one pair of planes and
// `channel_pairs` pairs of channels.
double plane_products(const ConvolutionGeometry& g, const CollapsedKernel& kernel,
                      std::int64_t positions, std::int64_t channel_pairs);

}  // namespace troupe::model::cpu
