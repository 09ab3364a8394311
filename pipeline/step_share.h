#pragma once

// One replica's part of one step: what each of its micro-batches contributes, and from that what it
// adds to the sum. Kept until the step is applied, because a flag asks for the same at other
// scales.

#include <cstdint>
#include <memory>
#include <vector>

#include "model/gan.h"
#include "pipeline/iteration_share.h"
#include "pipeline/step_record.h"
#include "pipeline/sum_layout.h"
#include "pipeline/training_state.h"
#include "runtime/base/buffer.h"

namespace troupe::pipeline {

// What one replica adds to a step, and its header.
struct Contribution {
  StepHeader header;
  SumLayout layout;
  runtime::Buffer sums;  // of the slot's contribution vector
};

// Filled by a StepComputer; several may be filled at a time, without a word of each other. One
// thread. Memory: one contribution vector per micro-batch computed so far.
class StepShare {
 public:
  // The step at schedule position `slot` of that iteration. Gan and options outlive it.
  StepShare(const model::Gan& gan, const TrainingOptions& options,
            std::shared_ptr<const IterationShare> iteration, std::uint32_t slot);

  std::uint64_t step() const;
  std::uint32_t slot() const { return slot_; }
  model::SlotKind kind() const { return options_->schedule[slot_]; }
  // Micro-batches whose contribution is known, from the first on.
  std::size_t computed() const { return contributions_.size(); }
  bool complete() const { return computed() == to_compute(); }
  std::size_t to_compute() const { return iteration_->computed_in(slot_); }

  // When it is complete: its part with the given scales, and the header but for the hash of the
  // state before the step, which nobody may know yet. Again with other scales for attempt 1,
  // without computing anything anew; the iteration's events are not needed for it.
  Contribution contribution(std::uint32_t attempt, const std::vector<std::int16_t>& scales) const;

 private:
  friend class StepComputer;

  const model::ContributionLayout& layout() const { return gan_->contributions(kind()); }
  // Of micro-batch computed(), computed from these events.
  void add(std::vector<float> contributions);
  runtime::Hash128 hash_of(std::size_t micro_batch, const std::vector<std::int16_t>& scales) const;

  const model::Gan* gan_;
  const TrainingOptions* options_;
  std::shared_ptr<const IterationShare> iteration_;
  std::uint32_t slot_;
  std::vector<std::vector<float>> contributions_;  // per micro-batch
  std::uint64_t events_ = 0, event_sum_ = 0;       // of the header
};

}  // namespace troupe::pipeline
