#include "pipeline/steps/sum_layout.h"

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

using Role = model::ContributionTensor::Role;

bool is_gradient(const model::ContributionTensor& tensor) {
  return tensor.role == Role::kGeneratorGradient || tensor.role == Role::kDiscriminatorGradient;
}

}  // namespace

std::size_t SumLayout::offset(std::int64_t element) const {
  const auto position = static_cast<std::size_t>(element);
  if (element < floats) return position * sizeof(float);
  const auto count = static_cast<std::size_t>(floats);
  // Integers begin at a multiple of their size, so a float's room stays empty behind an odd number
  // of floats.
  const std::size_t aligned = (count + count % 2) * sizeof(float);
  return aligned + (position - count) * sizeof(std::int64_t);
}

bool SumLayout::holds(const Bucket& bucket) const {
  if (bucket.size < 0 || bucket.offset < 0 || bucket.offset > elements - bucket.size) return false;
  return bucket.floats ? bucket.end() <= floats : bucket.offset >= floats;
}

std::span<const float> SumLayout::floats_of(const runtime::Buffer& sums) const {
  CHECK(sums.size() == bytes(), "sums of this layout");
  return sums.as<float>().first(static_cast<std::size_t>(floats));
}

std::span<const std::int64_t> SumLayout::integers_of(const runtime::Buffer& sums) const {
  CHECK(sums.size() == bytes(), "sums of this layout");
  return sums.as<std::int64_t>().last(static_cast<std::size_t>(elements - floats));
}

MutableSums SumLayout::parts_of(runtime::Buffer& sums) const {
  CHECK(sums.size() == bytes(), "sums of this layout");
  return {sums.mutable_as<float>().first(static_cast<std::size_t>(floats)),
          sums.mutable_as<std::int64_t>().last(static_cast<std::size_t>(elements - floats))};
}

SumLayout sum_layout(const model::ContributionLayout& contributions,
                     std::optional<ReductionFormat> lossy) {
  SumLayout layout;
  layout.elements = contributions.size;
  if (!lossy) return layout;
  for (const model::ContributionTensor& tensor : contributions.tensors) {
    if (!is_gradient(tensor)) continue;
    CHECK(tensor.offset == layout.floats, "gradients stand in front of everything else");
    layout.floats += tensor.size;
  }
  return layout;
}

}  // namespace troupe::pipeline
