#include "pipeline/step_share.h"

#include <utility>

#include "model/exact_sum.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

StepShare::StepShare(const model::Gan& gan, const TrainingOptions& options,
                     std::shared_ptr<const IterationShare> iteration, std::uint32_t slot)
    : gan_(&gan), options_(&options), iteration_(std::move(iteration)), slot_(slot) {
  CHECK(slot < options.schedule.size());
}

std::uint64_t StepShare::step() const {
  return iteration_->iteration() * options_->schedule.size() + slot_;
}

// The ledger is written here, from the events that were computed with, which may be let go before
// the contribution is asked for.
void StepShare::add(std::vector<float> contributions) {
  const bool own = computed() < iteration_->size();
  const Batch& events = iteration_->micro_batch(computed()).events;
  contributions_.push_back(std::move(contributions));
  if (!own) return;
  for (const std::uint64_t id : events.event_ids.as<std::uint64_t>()) {
    event_sum_ += event_mix(id, iteration_->iteration(), slot_);
  }
  events_ += events.events;
}

Contribution StepShare::contribution(std::uint32_t attempt,
                                     const std::vector<std::int16_t>& scales) const {
  CHECK(complete(), "the step is not computed");
  CHECK(scales.size() == layout().tensors.size());
  Contribution result;
  result.layout = sum_layout(layout(), options_->lossy);
  result.sums = runtime::Buffer::zeroed(result.layout.bytes());
  StepHeader& header = result.header;
  header.step = step();
  header.attempt = attempt;
  header.exponents.assign(layout().tensors.size(), model::kNoExponent);
  header.events = events_;
  header.event_sum = event_sum_;
  const MutableSums sums = result.layout.parts_of(result.sums);
  for (std::size_t i = 0; i < iteration_->size(); ++i) {
    add_micro_batch(layout(), contributions_[i], iteration_->micro_batch(i).index,
                    options_->micro_batches, scales, sums, header);
  }
  if (const auto checked = iteration_->checked_in(slot_)) {
    header.check_minimum = hash_of(*checked, scales);
    header.check_maximum = header.check_minimum;
  }
  return result;
}

// Of what the micro-batch adds to the sums.
runtime::Hash128 StepShare::hash_of(std::size_t micro_batch,
                                    const std::vector<std::int16_t>& scales) const {
  const SumLayout sum = sum_layout(layout(), options_->lossy);
  runtime::Buffer alone = runtime::Buffer::zeroed(sum.bytes());
  StepHeader unused;
  unused.exponents.assign(layout().tensors.size(), model::kNoExponent);
  add_micro_batch(layout(), contributions_[micro_batch], iteration_->micro_batch(micro_batch).index,
                  options_->micro_batches, scales, sum.parts_of(alone), unused);
  return runtime::hash_of(alone.bytes());
}

}  // namespace troupe::pipeline
