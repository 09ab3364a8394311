#include "model/backend/cpu/input_planes.h"

#include <algorithm>

#include "model/backend/cpu/rearrange.h"

namespace troupe::model::cpu {

template <class Element>
void InputPlanes<Element>::make(const float* images, const Samples& samples, std::int64_t ix,
                                Element* planes, std::byte* beside) const {
  const std::int64_t plane = g_.in[1] * g_.in[2] * g_.in_channels, size = g_.in[0] * plane;
  const float* image = images + samples.first * size + ix * plane;
  if constexpr (!std::is_same_v<Element, float>) {
    if (from_cells_) {
      for (std::int64_t part = 0; part < tiling_.parts; ++part) {
        cells_to(part_of(part), image, point_stride(),
                 planes + part * elements_of<Element>(g_.in_channels) * tiling_.plane);
      }
      return;
    }
  }
  float* numbers = elements_.numbers(planes, beside);
  for (std::int64_t part = 0; part < tiling_.parts; ++part) {
    Rearrangement cells = part_of(part);
    cells.samples = samples.count;
    rearrange(cells, image, numbers + part * g_.in_channels * tiling_.plane);
  }
  elements_.make_inputs({tiling_.tiles(), image_channels(), tiling_.plane}, planes, beside);
}

// Every part of the taps reads the image as channels of its own, shifted by the taps in front of
// the part.
template <class Element>
Rearrangement InputPlanes<Element>::part_of(std::int64_t part) const {
  return {.rows = g_.in[1],
          .row_cells = g_.in[2],
          .channels = g_.in_channels,
          .row_stride = g_.in[2] * g_.in_channels,
          .cell_stride = g_.in_channels,
          .first_row = g_.pad_before[1],
          .plane_rows = g_.out[1] + g_.kernel[1] - 1,
          .before = g_.pad_before[2] - part * tiling_.taps_of_part,
          .numbers = tiling_.points,
          .step = tiling_.outputs,
          .row = tiling_.row,
          .plane = tiling_.plane,
          .number_stride = number_stride(),
          .sample_stride = cells(g_.in) * g_.in_channels,
          .places = tiling_.samples};
}

template <class Element>
void InputPlanes<Element>::make_up_to(const float* images, const Samples& samples, std::int64_t ox,
                                      std::int64_t& made, std::byte* scratch) const {
  for (const std::int64_t needed = needed_for(ox); made < needed; ++made) {
    make(images, samples, made, scratch, scratch);
  }
}

template class InputPlanes<float>;
template class InputPlanes<Bfloat16Pair>;
template class InputPlanes<RoundedFloat>;
template class InputPlanes<Bfloat16>;

}  // namespace troupe::model::cpu
