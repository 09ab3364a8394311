#pragma once

// Weights in the type that our convolutions multiply (PlaneFormat): floats as they are, or bfloat16
// in pairs of channels.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/scratch.h"

namespace troupe::model::cpu {

template <class Element>
constexpr std::int64_t elements_of(std::int64_t channels) {
  constexpr std::int64_t kEach = PlaneFormat<Element>::kChannels;
  return (channels + kEach - 1) / kEach;
}

// The weight of an output for the channels of one element, of which `channels` are left and follow
// each other `stride` floats apart.
template <class Element>
Element weight_of(const float* weights, std::int64_t stride, std::int64_t channels) {
  if constexpr (std::is_same_v<Element, float>) {
    return *weights;
  } else {
    return {to_bfloat16(*weights), channels > 1 ? to_bfloat16(weights[stride]) : Bfloat16{}};
  }
}

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
        for (std::int64_t c = 0; c < channels_; c += PlaneFormat<Element>::kChannels) {
          for (std::int64_t o = 0; o < outputs_; ++o) {
            *to++ = weight_of<Element>(weights + (tap * channels_ + c) * outputs_ + o, outputs_,
                                       channels_ - c);
          }
        }
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
