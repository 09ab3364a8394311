#include "pipeline/steps/step_record.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/exact_sum.h"
#include "model/optimiser.h"
#include "model/rounded_sum.h"
#include "model/streams.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

runtime::Error diverged(std::string message) {
  return {runtime::ErrorKind::kDiverged, std::move(message)};
}

std::string place(std::uint64_t step, const TrainingOptions& options) {
  const std::size_t slots = options.schedule.size();
  return fmt::format("step {} (iteration {}, slot {})", step, step / slots, step % slots);
}

std::string disagreement(const StepHeader& header, const TrainingOptions& options,
                         const SpotChecks& checks) {
  const char* const part = part_of_sum(options);
  const auto check = checks.of(header.step / options.schedule.size());
  if (!check) return fmt::format("a {} that was computed twice gave two results", part);
  return fmt::format("{} {} gave two results, {} and {}, on member.{} and member.{}", part,
                     check->micro_batch, header.check_minimum.text(), header.check_maximum.text(),
                     checks.member_of(check->owner), checks.member_of(check->witness));
}

// The least micro-batch whose piece has a NaN or infinity; there is one.
std::uint32_t first_non_finite(const Contributions& contributions, const model::SumPart& piece) {
  std::vector<float> values(static_cast<std::size_t>(piece.size));
  std::uint32_t first = UINT32_MAX;
  std::size_t number = 0;
  for (const model::Vectors& block : contributions.vectors) {
    for (std::int64_t i = 0; i < block.count; ++i, ++number) {
      contributions.memory.read(block.first + i * block.stride + piece.begin, values.data(),
                                values.size() * sizeof(float));
      if (std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) continue;
      first = std::min(first, contributions.micro_batches[number]);
    }
  }
  return first;
}

// The first gradient that the optimisers are not defined for; nullptr: there is none.
const model::ContributionTensor* too_large(const StepHeader& header,
                                           const model::ContributionLayout& tensors) {
  using Role = model::ContributionTensor::Role;
  for (std::size_t i = 0; i < header.exponents.size(); ++i) {
    const model::ContributionTensor& tensor = tensors.tensors.at(i);
    const bool is_gradient =
        tensor.role == Role::kGeneratorGradient || tensor.role == Role::kDiscriminatorGradient;
    if (is_gradient && header.exponents[i] > model::kLargestGradientExponent) return &tensor;
  }
  return nullptr;
}

// The same number is rounded alike on any member and in any bucket. The vectors may be on a device.
void add_rounded(const Contributions& contributions, std::span<const model::SumPart> pieces,
                 std::uint64_t step, std::span<std::int16_t> sums,
                 std::span<model::QuantiseReport> reports) {
  runtime::RandomPosition at{contributions.seed, 0, static_cast<std::uint32_t>(step), 0,
                             model::kRoundingStream};
  std::vector<float> values;
  std::size_t number = 0;
  for (const model::Vectors& block : contributions.vectors) {
    for (std::int64_t i = 0; i < block.count; ++i, ++number) {
      at.micro_batch = contributions.micro_batches[number];
      std::size_t begin = 0;
      for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
        values.resize(static_cast<std::size_t>(pieces[piece].size));
        contributions.memory.read(block.first + i * block.stride + pieces[piece].begin,
                                  values.data(), values.size() * sizeof(float));
        reports[piece].merge(model::round_add(values, pieces[piece].k, at, pieces[piece].begin,
                                              sums.subspan(begin, values.size())));
        begin += values.size();
      }
    }
  }
}

// The scale that follows `now` behind this step. It grows coarser at once, and finer by one bit in
// every fourth step at most: changes that are small by chance, as those of a tensor of few elements
// may be, do not take the room for the next ones.
std::int16_t rounded_scale_after(std::int16_t now, std::int16_t measured, std::uint64_t step) {
  if (now == model::kNoExponent) return measured;
  return std::min(measured, static_cast<std::int16_t>(step % 4 == 0 ? now + 1 : now));
}

}  // namespace

std::uint64_t event_mix(std::uint64_t event_id, std::uint64_t iteration, std::uint32_t slot) {
  using runtime::mix64;
  return mix64(event_id ^ mix64(iteration ^ mix64(std::uint64_t{slot} + 1)));
}

// A part may begin and end within tensors, so each tensor adds the piece of it that lies in the
// part. Maximum, or and minimum make the same header of all pieces as of whole tensors.
void add_part(const Contributions& contributions, const Bucket& part, std::uint32_t micro_batches,
              const std::vector<std::int16_t>& scales, const MutableSums& sums,
              StepHeader& header) {
  const auto& tensors = contributions.layout.tensors;
  CHECK(header.exponents.size() == tensors.size() && scales.size() == tensors.size());
  const std::size_t size = part.kind == SumKind::kInt64     ? sums.integers.size()
                           : part.kind == SumKind::kFloat32 ? sums.floats.size()
                                                            : sums.rounded.size();
  CHECK(size == static_cast<std::size_t>(part.size), "sums of the part");
  std::vector<model::SumPart> pieces;
  std::vector<std::size_t> tensor_of;  // per piece
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t begin = std::max(tensors[i].offset, part.offset);
    const std::int64_t end = std::min(tensors[i].offset + tensors[i].size, part.end());
    if (begin >= end) continue;
    pieces.push_back({begin, end - begin, scales[i]});
    tensor_of.push_back(i);
  }
  std::vector<model::QuantiseReport> reports(pieces.size());
  switch (part.kind) {
    case SumKind::kFloat32:
      contributions.sums.add_floats(contributions.vectors, pieces, sums.floats, reports);
      break;
    case SumKind::kInt16:
      CHECK(micro_batches <= model::kMostRounded, "sums that fit 16 bits");
      add_rounded(contributions, pieces, header.step, sums.rounded, reports);
      break;
    case SumKind::kInt64:
      contributions.sums.add_exactly(contributions.vectors, pieces, micro_batches, sums.integers,
                                     reports);
  }
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const std::size_t tensor = tensor_of[piece];
    header.exponents[tensor] = std::max(header.exponents[tensor], reports[piece].max_exponent);
    header.flagged |= reports[piece].flagged;
    if (!reports[piece].non_finite) continue;
    header.non_finite =
        std::min(header.non_finite, NonFinite{first_non_finite(contributions, pieces[piece]),
                                              static_cast<std::uint32_t>(tensor)});
  }
}

void add_micro_batch(const model::ContributionLayout& layout, std::span<const float> values,
                     std::uint32_t micro_batch, std::uint32_t micro_batches, std::uint64_t seed,
                     const std::vector<std::int16_t>& scales, const MutableSums& sums,
                     StepHeader& header) {
  const model::Vectors vector{values.data(), 1, layout.size};
  const Contributions contributions{layout,       model::host_memory(), model::host_sums(),
                                    {&vector, 1}, {&micro_batch, 1},    seed};
  const auto front = static_cast<std::int64_t>(sums.floats.size() + sums.rounded.size());
  const SumKind kind = sums.rounded.empty() ? SumKind::kFloat32 : SumKind::kInt16;
  for (const Bucket& part : {Bucket{0, front, kind}, Bucket{front, layout.size - front}}) {
    add_part(contributions, part, micro_batches, scales, sums, header);
  }
  ++header.micro_batches;
}

namespace {

// The least offer of each worker, ascending.
void combine(const std::vector<TurnOffer>& from, std::vector<TurnOffer>& into) {
  into.insert(into.end(), from.begin(), from.end());
  std::ranges::sort(into);
  WorkerSet known;
  std::erase_if(into, [&](const TurnOffer& offer) {
    if (known.has(offer.worker)) return true;
    known.add(offer.worker);
    return false;
  });
}

}  // namespace

// Every field is combined by sum, minimum, maximum, or or union, so that any order and grouping of
// members gives the same header.
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
  into.check_minimum = std::min(into.check_minimum, from.check_minimum);
  into.check_maximum = std::max(into.check_maximum, from.check_maximum);
  into.judged |= from.judged;
  into.distance = std::min(into.distance, from.distance);
  combine(from.next, into.next);
  into.stop_requested |= from.stop_requested;
  into.checkpoint_requested |= from.checkpoint_requested;
}

WorkerSet turn_behind(const StepHeader& header, const TrainingOptions& options) {
  const auto slot = static_cast<std::uint32_t>((header.step + 1) % options.schedule.size());
  const std::uint32_t count = options.strategy.at_a_time(slot);
  WorkerSet next;
  for (const TurnOffer& offer : header.next) {
    if (offer.worker < options.strategy.workers && next.size() < count) next.add(offer.worker);
  }
  return next;
}

runtime::Result<bool> judge(const StepHeader& header, const model::ContributionLayout& tensors,
                            const TrainingOptions& options, const SpotChecks& checks) {
  // The order of the checks is the order of causes: different states explain a NaN, a NaN explains
  // a gradient that is too large, and a flag means that hashes of the sums say nothing yet.
  if (header.state_minimum != header.state_maximum) {
    return diverged(fmt::format(
        "{}: members hold different states before it, {} and {}; a host has bad memory or computes "
        "differently: compare the hashes in the members' logs and resume without it",
        place(header.step, options), header.state_minimum.text(), header.state_maximum.text()));
  }
  if (header.non_finite.found()) {
    return diverged(
        fmt::format("{}: {} of {} {} is NaN or infinite; start again with a lower learning rate or "
                    "another seed",
                    place(header.step, options), tensors.tensors.at(header.non_finite.tensor).name,
                    part_of_sum(options), header.non_finite.micro_batch));
  }
  if (const auto* tensor = too_large(header, tensors)) {
    return diverged(fmt::format(
        "{}: {} is 1.8e19 or more in a {}, which the optimiser cannot square; start again "
        "with a lower learning rate or another seed, and look for events with extreme cells "
        "(troupe data info)",
        place(header.step, options), tensor->name, part_of_sum(options)));
  }
  if (!header.flagged && header.check_minimum < header.check_maximum) {
    return diverged(
        fmt::format("{}: {}; one of their hosts has bad memory or computes "
                    "differently: test both, and resume without it",
                    place(header.step, options), disagreement(header, options, checks)));
  }
  if (!header.flagged) return true;
  if (header.attempt > 0) {
    return diverged(
        fmt::format("{}: a gradient was measured, and has grown when it was sent again; "
                    "a host has bad memory: test them",
                    place(header.step, options)));
  }
  return false;
}

std::optional<runtime::Error> overflow(const StepRecord& record, const SumLayout& sums,
                                       const model::ContributionLayout& tensors) {
  const std::span<const float> floats = sums.floats_of(record.sums);
  // The comparison is false for a NaN, too.
  const float bound =
      std::ldexp(static_cast<float>(record.header.micro_batches), model::kLargestGradientExponent);
  const auto first = std::find_if(floats.begin(), floats.end(),
                                  [bound](float sum) { return !(std::abs(sum) < bound); });
  if (first == floats.end()) return std::nullopt;
  const std::int64_t element = first - floats.begin();
  const auto tensor =
      std::find_if(tensors.tensors.begin(), tensors.tensors.end(),
                   [&](const auto& each) { return element < each.offset + each.size; });
  return diverged(
      fmt::format("step {}: the sum of {} is too large for the optimiser or the format it is sent "
                  "in; start again with a lower learning rate or another seed",
                  record.header.step, tensor->name));
}

std::vector<std::int16_t> scales_after(const std::vector<std::int16_t>& state_scales,
                                       const StepHeader& header, std::uint32_t micro_batches,
                                       std::size_t rounded) {
  CHECK(header.exponents.size() == state_scales.size());
  std::vector<std::int16_t> scales = state_scales;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int16_t exponent = header.exponents[i];
    if (exponent == model::kNoExponent) continue;
    scales[i] = i < rounded ? rounded_scale_after(scales[i], model::rounded_scale_for(exponent),
                                                  header.step)
                            : model::scale_for(exponent, micro_batches);
  }
  return scales;
}

std::size_t rounded_tensors(const model::ContributionLayout& tensors,
                            const TrainingOptions& options) {
  const std::int64_t end = sum_layout(tensors, options.gradient_sums()).rounded();
  const auto is_behind = [end](const auto& tensor) { return tensor.offset >= end; };
  return static_cast<std::size_t>(std::ranges::find_if(tensors.tensors, is_behind) -
                                  tensors.tensors.begin());
}

}  // namespace troupe::pipeline
