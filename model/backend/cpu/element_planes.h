#pragma once

// Planes of the elements that our convolutions multiply (PlaneFormat). Planes of float are made in
// place, planes of bfloat16 from floats beside them.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "model/backend/cpu/bfloat16_planes.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/scratch.h"

namespace troupe::model::cpu {

// Returns use(element): for a float, or for what this host multiplies fastest in pairs.
template <class Use>
auto with_element(Precision precision, std::int64_t channels, const Use& use) {
  if (!in_pairs(precision, channels)) return use(float());
  if (multiplies_pairs_at_once()) return use(Bfloat16Pair());
  return use(RoundedFloat());
}

template <class Element>
class ElementPlanes {
 public:
  // `numbers`: floats of what is made at once.
  ElementPlanes([[maybe_unused]] std::int64_t numbers, [[maybe_unused]] ScratchPlan& plan) {
    if constexpr (!kInPlace) numbers_ = plan.add_floats(numbers);
  }

  // The place to write the floats to that become `planes`: [number][channel][position].
  float* numbers(Element* planes, std::byte* scratch) const {
    if constexpr (kInPlace) {
      return planes;
    } else {
      return scratch_at<float>(scratch, numbers_);
    }
  }

  // Turns the numbers of an image, which a convolution reads, into elements; with tiles, into their
  // values at the points.
  void make_inputs(const PlaneSizes& sizes, Element* planes, std::byte* scratch) const {
    if constexpr (!kInPlace) {
      inputs_to(sizes, numbers(planes, scratch), planes);
    } else if (sizes.tiles) {
      const std::int64_t count = sizes.channels * sizes.plane;
      transform_inputs(planes, count, count);
    }
  }

  // The same for derivatives of outputs; a tile has `outputs` of them.
  void make_derivatives(const PlaneSizes& sizes, int outputs, Element* planes,
                        std::byte* scratch) const {
    if constexpr (!kInPlace) {
      derivatives_to(sizes, outputs, numbers(planes, scratch), planes);
    } else if (sizes.tiles) {
      const std::int64_t count = sizes.channels * sizes.plane;
      transform_derivatives(planes, count, count, outputs);
    }
  }

 private:
  static constexpr bool kInPlace = std::is_same_v<Element, float>;

  std::size_t numbers_ = 0;
};

}  // namespace troupe::model::cpu
