#pragma once

// The image that a convolution reads, as planes (plane_convolution.h): made while its outputs are
// computed, the newest few being kept.

#include <algorithm>
#include <cstdint>

#include "model/backend/cpu/bfloat16_cells.h"
#include "model/backend/cpu/element_planes.h"
#include "model/backend/cpu/element_weights.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/scratch.h"

namespace troupe::model::cpu {

// Element: one that has a PlaneFormat.
template <class Element>
class InputPlanes {
 public:
  // `geometry` and `tiling` must outlive it; `held` planes are kept at a time.
  InputPlanes(const ConvolutionGeometry& geometry, const Tiling& tiling, std::int64_t held,
              ScratchPlan& plan)
      : g_(geometry),
        tiling_(tiling),
        held_(held),
        from_cells_(tiling.tiles() && tiling.samples == 1 && prefers_cells(g_.in_channels) &&
                    (tiling.parts == 1 || g_.in_channels % PlaneFormat<Element>::kInPair == 0)),
        place_(plan.add_array<Element>(held * plane_size())),
        elements_(from_cells_ ? 0 : tiling.points * number_stride(), plan) {}

  // Channels of the planes, which are the image's once for each part of the taps, and the elements
  // these fill.
  std::int64_t image_channels() const { return g_.in_channels * tiling_.parts; }
  std::int64_t channels() const { return elements_of<Element>(image_channels()); }
  std::int64_t channel_stride() const { return tiling_.plane; }
  std::int64_t point_stride() const { return channels() * tiling_.plane; }

  // Makes plane `ix` of samples, no more than the tiling has side by side, and returns it. `images`
  // are the micro-batch's, of x planes. `beside` is scratch memory for the work. Threads may make
  // several planes at once. Planes that are being made or still read must be neighbours, and no
  // more than are held.
  const Element* make(const float* images, const Samples& samples, std::int64_t ix,
                      std::byte* scratch, std::byte* beside) const {
    Element* planes = at(ix, scratch);
    make(images, samples, ix, planes, beside);
    return planes;
  }
  // The same at another place.
  void make(const float* images, const Samples& samples, std::int64_t ix, Element* planes,
            std::byte* beside) const;
  // Number of planes up to the last one that output plane `ox` needs.
  std::int64_t needed_for(std::int64_t ox) const {
    return std::min(g_.in[0], ox - g_.pad_before[0] + g_.kernel[0]);
  }
  // Makes the planes up to that one; `made` counts those that exist.
  void make_up_to(const float* images, const Samples& samples, std::int64_t ox, std::int64_t& made,
                  std::byte* scratch) const;

  // [point][channel][position] of x plane `ix`.
  Element* at(std::int64_t ix, std::byte* scratch) const {
    return scratch_at<Element>(scratch, place_) + ix % held_ * plane_size();
  }

 private:
  std::int64_t plane_size() const { return tiling_.points * point_stride(); }
  std::int64_t number_stride() const { return image_channels() * tiling_.plane; }
  Rearrangement part_of(std::int64_t part) const;

  const ConvolutionGeometry& g_;
  const Tiling& tiling_;
  std::int64_t held_;
  // Planes of bfloat16 are made straight from cells. No pair has channels of two parts.
  bool from_cells_;
  std::size_t place_;
  ElementPlanes<Element> elements_;
};

}  // namespace troupe::model::cpu
