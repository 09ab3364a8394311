#pragma once

// Weights in the type that our convolutions multiply (PlaneFormat): floats as they are, or
// bfloat16.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "model/backend/cpu/bfloat16_planes.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/scratch.h"

namespace troupe::model::cpu {

template <class Element>
class ElementWeights {
 public:
  ElementWeights(std::int64_t taps, std::int64_t channels, std::int64_t outputs, ScratchPlan& plan)
      : taps_(taps), channels_(channels), outputs_(outputs) {
    if constexpr (!kAsTheyAre) {
      place_ = plan.add_array<Element>(taps * elements_of<Element>(channels) * outputs);
    }
  }

  // From [tap][channel][output].
  void arrange(const float* weights, std::byte* scratch) const {
    if constexpr (!kAsTheyAre) {
      auto* to = scratch_at<Element>(scratch, place_);
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        rows_to(channels_, outputs_, outputs_, weights + tap * channels_ * outputs_,
                to + tap * elements_of<Element>(channels_) * outputs_);
      }
    }
  }

  // [channel][output] of a tap; `weights` must be those that were arranged.
  const Element* of_tap(std::int64_t tap, const float* weights, const std::byte* scratch) const {
    const std::int64_t place = tap * elements_of<Element>(channels_) * outputs_;
    if constexpr (kAsTheyAre) {
      return weights + place;
    } else {
      return scratch_at<Element>(scratch, place_) + place;
    }
  }

 private:
  static constexpr bool kAsTheyAre = std::is_same_v<Element, float>;

  std::int64_t taps_, channels_, outputs_;
  std::size_t place_ = 0;
};

}  // namespace troupe::model::cpu
