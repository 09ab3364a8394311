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
  if (element < front.size) return position * bytes_of(front.kind);
  const auto count = static_cast<std::size_t>(front.size);
  // 64-bit integers begin at a multiple of their size, so some room stays empty in front of them.
  constexpr std::size_t kEach = sizeof(std::int64_t);
  const std::size_t aligned = (count * bytes_of(front.kind) + kEach - 1) / kEach * kEach;
  return aligned + (position - count) * kEach;
}

bool SumLayout::holds(const Bucket& bucket) const {
  if (bucket.size < 0 || bucket.offset < 0 || bucket.offset > elements - bucket.size) return false;
  if (bucket.kind == SumKind::kInt64) return bucket.offset >= front.size;
  return bucket.kind == front.kind && bucket.end() <= front.size;
}

std::span<const float> SumLayout::floats_of(const runtime::Buffer& sums) const {
  CHECK(sums.size() == bytes(), "sums of this layout");
  return sums.as<float>().first(static_cast<std::size_t>(floats()));
}

std::span<const std::int16_t> SumLayout::rounded_of(const runtime::Buffer& sums) const {
  CHECK(sums.size() == bytes(), "sums of this layout");
  return sums.as<std::int16_t>().first(static_cast<std::size_t>(rounded()));
}

std::span<const std::int64_t> SumLayout::integers_of(const runtime::Buffer& sums) const {
  CHECK(sums.size() == bytes(), "sums of this layout");
  return sums.as<std::int64_t>().last(static_cast<std::size_t>(elements - front.size));
}

MutableSums SumLayout::parts_of(runtime::Buffer& sums) const {
  CHECK(sums.size() == bytes(), "sums of this layout");
  return {sums.mutable_as<float>().first(static_cast<std::size_t>(floats())),
          sums.mutable_as<std::int64_t>().last(static_cast<std::size_t>(elements - front.size)),
          sums.mutable_as<std::int16_t>().first(static_cast<std::size_t>(rounded()))};
}

SumLayout sum_layout(const model::ContributionLayout& contributions, SumKind gradients) {
  SumLayout layout;
  layout.elements = contributions.size;
  if (gradients == SumKind::kInt64) return layout;
  layout.front.kind = gradients;
  for (const model::ContributionTensor& tensor : contributions.tensors) {
    if (!is_gradient(tensor)) continue;
    CHECK(tensor.offset == layout.front.size, "gradients stand in front of everything else");
    layout.front.size += tensor.size;
  }
  return layout;
}

}  // namespace troupe::pipeline
