#include "model/backend/cpu/input_planes.h"

#include <algorithm>

#include "model/backend/cpu/rearrange.h"

namespace troupe::model::cpu {

template <class Element>
void InputPlanes<Element>::make(const float* images, const Samples& samples, std::int64_t ix,
                                Element* planes, std::byte* beside) const {
  const std::int64_t plane = g_.in[1] * g_.in[2] * g_.in_channels, size = g_.in[0] * plane;
  float* numbers = elements_.numbers(planes, beside);
  // Every part of the taps reads the image as channels of its own, shifted by the taps in front of
  // the part.
  for (std::int64_t part = 0; part < tiling_.parts; ++part) {
    rearrange({.rows = g_.in[1],
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
               .samples = samples.count,
               .sample_stride = size,
               .places = tiling_.samples},
              images + samples.first * size + ix * plane,
              numbers + part * g_.in_channels * tiling_.plane);
  }
  elements_.make_inputs({tiling_.tiles(), image_channels(), tiling_.plane}, planes, beside);
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
template class InputPlanes<Bfloat16>;

}  // namespace troupe::model::cpu
