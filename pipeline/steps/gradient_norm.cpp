#include <array>
#include <cmath>
#include <span>

#include "model/exact_sum.h"
#include "pipeline/steps/sum_layout.h"
#include "pipeline/steps/training_state.h"

namespace troupe::pipeline {
namespace {

using Role = model::ContributionTensor::Role;

// Four sums at a time, so that none waits for the one before.
template <class Number>
double sum_of_squares(std::span<const Number> values) {
  std::array<double, 4> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  }
  for (; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    sums[0] += value * value;
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

// An integer stands for itself times 2^-k, so its square is scaled by 2^-2k. The sums become means
// by one division, behind the root.
double gradient_norm(const model::ContributionLayout& contributions, const StepRecord& record) {
  const SumLayout layout{contributions.size, record.front};
  const auto floats = layout.floats_of(record.sums);
  const auto rounded = layout.rounded_of(record.sums);
  const auto integers = layout.integers_of(record.sums);
  double squares = 0.0;
  for (std::size_t i = 0; i < contributions.tensors.size(); ++i) {
    const model::ContributionTensor& tensor = contributions.tensors[i];
    if (tensor.role != Role::kGeneratorGradient && tensor.role != Role::kDiscriminatorGradient) {
      continue;
    }
    const auto size = static_cast<std::size_t>(tensor.size);
    const auto first = static_cast<std::size_t>(tensor.offset);
    if (tensor.offset < layout.floats()) {
      squares += sum_of_squares(floats.subspan(first, size));
    } else if (record.scales[i] != model::kNoExponent) {
      const double sum = tensor.offset < layout.rounded()
                             ? sum_of_squares(rounded.subspan(first, size))
                             : sum_of_squares(integers.subspan(
                                   first - static_cast<std::size_t>(layout.front.size), size));
      squares += std::ldexp(sum, -2 * int{record.scales[i]});
    }
  }
  return std::sqrt(squares) / record.header.micro_batches;
}

}  // namespace troupe::pipeline
