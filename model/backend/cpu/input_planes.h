#pragma once

// The image that a convolution reads, as planes (plane_convolution.h): made in order while its
// outputs are computed, the newest few being kept.

#include <cstdint>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/scratch.h"

namespace troupe::model::cpu {

class InputPlanes {
 public:
  // `geometry` and `tiling` must outlive it; `held` planes are kept at a time.
  InputPlanes(const ConvolutionGeometry& geometry, const Tiling& tiling, std::int64_t held,
              ScratchPlan& plan)
      : g_(geometry),
        tiling_(tiling),
        held_(held),
        place_(plan.add_floats(held * tiling.points * point_stride())) {}

  // Of the planes: the image's for each part of the taps.
  std::int64_t channels() const { return g_.in_channels * tiling_.parts; }
  std::int64_t channel_stride() const { return tiling_.plane; }
  std::int64_t point_stride() const { return channels() * tiling_.plane; }

  // Makes the next plane of `sample`, an image of x planes, and returns it: number `ix`.
  float* make(const float* sample, std::int64_t ix, std::byte* scratch) const;
  // Makes those up to the one that output plane `ox` needs last; `made` counts.
  void make_up_to(const float* sample, std::int64_t ox, std::int64_t& made,
                  std::byte* scratch) const;

  // [point][channel][position] of x plane `ix`.
  float* at(std::int64_t ix, std::byte* scratch) const {
    return scratch_at<float>(scratch, place_) + ix % held_ * tiling_.points * point_stride();
  }

 private:
  const ConvolutionGeometry& g_;
  const Tiling& tiling_;
  std::int64_t held_;
  std::size_t place_;
};

}  // namespace troupe::model::cpu
