#include "pipeline/steps/step_share.h"

#include <algorithm>
#include <utility>

#include "model/exact_sum.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

StepShare::StepShare(const model::Gan& gan, const TrainingOptions& options,
                     std::shared_ptr<IterationShare> iteration, std::uint32_t slot)
    : gan_(&gan),
      options_(&options),
      iteration_(std::move(iteration)),
      slot_(slot),
      had_(own()),
      final_from_(layout().size) {
  CHECK(slot < options.schedule.size());
  if (own() == 0) final_from_ = 0;
}

std::uint64_t StepShare::step() const {
  return iteration_->iteration() * options_->schedule.size() + slot_;
}

void StepShare::take_over() {
  // The micro-batch that was computed to compare stands behind its own.
  computed_ = std::min(computed_, had_);
  std::size_t before = 0;
  for (Block& block : blocks_) {
    block.micro_batches = std::min(block.micro_batches, computed_ - before);
    before += block.micro_batches;
  }
  std::erase_if(blocks_, [](const Block& block) { return block.micro_batches == 0; });
  had_ = own();
  final_from_ = computed_ < own() ? layout().size : 0;
}

void StepShare::begin_anew() {
  iteration_->sort();
  blocks_.clear();
  computed_ = 0;
  had_ = own();
  final_from_ = own() > 0 ? layout().size : 0;
  events_ = event_sum_ = 0;
}

// The ledger is written here, because the events may be released before the contribution is asked
// for.
void StepShare::note_computed() {
  const std::size_t position = computed_++;
  if (computed_ == own()) final_from_ = 0;
  if (position >= own()) return;
  const Batch& events = iteration_->micro_batch(position).events;
  for (const std::uint64_t id : events.event_ids.as<std::uint64_t>()) {
    event_sum_ += event_mix(id, iteration_->iteration(), slot_);
  }
  events_ += events.events;
}

float* StepShare::contribution(std::size_t micro_batch) const {
  for (const Block& block : blocks_) {
    if (micro_batch < block.micro_batches) {
      return block.memory.get() + static_cast<std::int64_t>(micro_batch) * layout().size;
    }
    micro_batch -= block.micro_batches;
  }
  CHECK(false, "it has memory");
}

std::vector<model::Vectors> StepShare::contributions(std::size_t micro_batches) const {
  std::vector<model::Vectors> vectors;
  for (const Block& block : blocks_) {
    const std::size_t count = std::min(block.micro_batches, micro_batches);
    if (count == 0) break;
    vectors.push_back({block.memory.get(), static_cast<std::int64_t>(count), layout().size});
    micro_batches -= count;
  }
  CHECK(micro_batches == 0, "they are computed");
  return vectors;
}

StepHeader StepShare::begin_header(std::uint32_t attempt) const {
  StepHeader header;
  header.step = step();
  header.attempt = attempt;
  header.exponents.assign(layout().tensors.size(), model::kNoExponent);
  return header;
}

std::vector<std::uint32_t> StepShare::contributed() const {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < own(); ++i) {
    const std::uint32_t index = iteration_->micro_batch(i).index;
    if (index % options_->parts() == 0) numbers.push_back(index / options_->parts());
  }
  return numbers;
}

runtime::Buffer StepShare::add_up(const Bucket& bucket, const std::vector<std::int16_t>& scales,
                                  StepHeader& header) const {
  CHECK(bucket.offset >= final_from_, "the step is not computed");
  runtime::Buffer sums = runtime::Buffer::zeroed(bucket.bytes());
  MutableSums part;
  switch (bucket.kind) {
    case SumKind::kFloat32:
      part.floats = sums.mutable_as<float>();
      break;
    case SumKind::kInt16:
      part.rounded = sums.mutable_as<std::int16_t>();
      break;
    case SumKind::kInt64:
      part.integers = sums.mutable_as<std::int64_t>();
  }
  const std::vector<std::uint32_t> indices = contributed();
  const std::vector<model::Vectors> vectors = contributions(indices.size());
  add_part({layout(), gan_->memory(), gan_->backend().sums(), vectors, indices, options_->seed},
           bucket, options_->micro_batches, scales, part, header);
  return sums;
}

void StepShare::finish_header(const std::vector<std::int16_t>& scales, StepHeader& header) const {
  CHECK(complete(), "the step is not computed");
  header.micro_batches = static_cast<std::uint32_t>(contributed().size());
  header.events = events_;
  header.event_sum = event_sum_;
  if (const auto checked = iteration_->checked_in(slot_)) {
    header.check_minimum = hash_of(*checked, scales);
    header.check_maximum = header.check_minimum;
  }
}

// The hash of what the micro-batch adds to the sums.
runtime::Hash128 StepShare::hash_of(std::size_t micro_batch,
                                    const std::vector<std::int16_t>& scales) const {
  const SumLayout sum = sums();
  std::vector<float> values(static_cast<std::size_t>(layout().size));
  gan_->memory().read(contribution(micro_batch), values.data(), values.size() * sizeof(float));
  runtime::Buffer alone = runtime::Buffer::zeroed(sum.bytes());
  StepHeader unused = begin_header(0);
  add_micro_batch(layout(), values, iteration_->micro_batch(micro_batch).index,
                  options_->micro_batches, options_->seed, scales, sum.parts_of(alone), unused);
  return runtime::hash_of(alone.bytes());
}

}  // namespace troupe::pipeline
