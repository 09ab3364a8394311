#include "pipeline/step_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/exact_sum.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

Diverged diverged(std::string message) {
  return {runtime::Error{runtime::ErrorKind::kDiverged, std::move(message)}};
}

std::string place(std::uint64_t step, std::uint32_t slots) {
  return fmt::format("step {} (iteration {}, slot {})", step, step / slots, step % slots);
}

}  // namespace

std::uint64_t event_mix(std::uint64_t event_id, std::uint64_t iteration, std::uint32_t slot) {
  using runtime::mix64;
  return mix64(event_id ^ mix64(iteration ^ mix64(std::uint64_t{slot} + 1)));
}

void add_micro_batch(const model::ContributionLayout& layout, std::span<const float> values,
                     std::uint32_t micro_batch, std::uint32_t micro_batches,
                     const std::vector<std::int16_t>& scales, std::span<std::int64_t> sums,
                     StepHeader& header) {
  CHECK(header.exponents.size() == layout.tensors.size() && scales.size() == layout.tensors.size());
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    const auto offset = static_cast<std::size_t>(layout.tensors[i].offset);
    const auto size = static_cast<std::size_t>(layout.tensors[i].size);
    const model::QuantiseReport report = model::quantise_add(
        values.subspan(offset, size), scales[i], micro_batches, sums.subspan(offset, size));
    header.exponents[i] = std::max(header.exponents[i], report.max_exponent);
    header.flagged |= report.flagged;
    if (report.first_non_finite >= 0) {
      header.non_finite =
          std::min(header.non_finite, NonFinite{micro_batch, static_cast<std::uint32_t>(i)});
    }
  }
  ++header.micro_batches;
}

void combine(const StepHeader& from, StepHeader& into) {
  CHECK(from.step == into.step && from.attempt == into.attempt, "headers of two steps or attempts");
  CHECK(from.exponents.size() == into.exponents.size());
  for (std::size_t i = 0; i < into.exponents.size(); ++i) {
    into.exponents[i] = std::max(into.exponents[i], from.exponents[i]);
  }
  into.flagged |= from.flagged;
  into.non_finite = std::min(into.non_finite, from.non_finite);
  into.micro_batches += from.micro_batches;
  into.events += from.events;
  into.event_sum += from.event_sum;
  into.state_minimum = std::min(into.state_minimum, from.state_minimum);
  into.state_maximum = std::max(into.state_maximum, from.state_maximum);
  into.stop_requested |= from.stop_requested;
  into.checkpoint_requested |= from.checkpoint_requested;
}

Verdict judge(const StepHeader& header, const model::ContributionLayout& tensors,
              std::uint32_t slots) {
  if (header.state_minimum != header.state_maximum) {
    return diverged(fmt::format(
        "{}: members hold different states before it, {} and {}; a host has bad memory or computes "
        "differently: compare the hashes in the members' logs and resume without it",
        place(header.step, slots), header.state_minimum.text(), header.state_maximum.text()));
  }
  if (header.non_finite.found()) {
    return diverged(fmt::format(
        "{}: {} of micro-batch {} is NaN or infinite; start again with a lower learning rate or "
        "another seed",
        place(header.step, slots), tensors.tensors.at(header.non_finite.tensor).name,
        header.non_finite.micro_batch));
  }
  if (!header.flagged) return Commit{};
  CHECK(header.attempt == 0, "flagged although its scales were measured");
  return Retry{};
}

std::vector<std::int16_t> scales_for_attempt(const std::vector<std::int16_t>& state_scales,
                                             const StepHeader& attempt_0,
                                             std::uint32_t micro_batches) {
  return scales_after(state_scales, attempt_0, micro_batches);
}

std::vector<std::int16_t> scales_after(const std::vector<std::int16_t>& state_scales,
                                       const StepHeader& committed, std::uint32_t micro_batches) {
  CHECK(committed.exponents.size() == state_scales.size());
  std::vector<std::int16_t> scales = state_scales;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int16_t exponent = committed.exponents[i];
    if (exponent != model::kNoExponent) scales[i] = model::scale_for(exponent, micro_batches);
  }
  return scales;
}

}  // namespace troupe::pipeline
