#pragma once

// One replica's part of one step: what each of its micro-batches contributes, and from that what it
// adds to the sum. Kept until the step is applied, because a flag asks for the same at other
// scales.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/gan.h"
#include "model/shared_statistics.h"
#include "pipeline/steps/iteration_share.h"
#include "pipeline/steps/step_record.h"
#include "pipeline/steps/sum_layout.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/buffer.h"

namespace troupe::pipeline {

// A StepComputer fills it. Its threads write the elements that are computed last while the calling
// thread reads those reported as final. Several shares may be filled at a time. All calls on one
// thread. Memory, the backend's: contribution vectors of whole groups of micro-batches, for those
// computed or being computed.
class StepShare {
 public:
  // The step at schedule position `slot` of that iteration. Gan and options outlive it.
  StepShare(const model::Gan& gan, const TrainingOptions& options,
            std::shared_ptr<IterationShare> iteration, std::uint32_t slot);

  const std::shared_ptr<IterationShare>& iteration() const { return iteration_; }
  std::uint64_t step() const;
  std::uint32_t slot() const { return slot_; }
  model::SlotKind kind() const { return options_->schedule[slot_]; }
  // The step, or the round of it that this is.
  model::ScheduledWork work() const { return model::work_at(options_->schedule, slot_); }
  // Micro-batches whose contribution is known, from the first on.
  std::size_t computed() const { return computed_; }
  bool complete() const { return computed() == to_compute(); }
  std::size_t own() const { return iteration_->size(); }  // the first of them
  std::size_t to_compute() const { return iteration_->computed_in(slot_); }

  // Call it after IterationShare::take_over(). Computed contributions of its own micro-batches
  // stay.
  void take_over();

  // Forgets all contributions: they are made again, in the order of the indices. The iteration has
  // all its events.
  void begin_anew();

  // Its part in three steps, so that a bucket can be on its way while elements before it are still
  // computed. Again with other scales for attempt 1, without computing anything anew; the
  // iteration's events are not needed for it.
  //
  // An empty header.
  StepHeader begin_header(std::uint32_t attempt) const;
  // The sums of a bucket of sums(). Notes exponents and faults in the header. Each bucket once per
  // header, in any order. CHECKs that the bucket is final: the computer reported it, or all is
  // computed.
  runtime::Buffer add_up(const Bucket& bucket, const std::vector<std::int16_t>& scales,
                         StepHeader& header) const;
  // Once the share is complete and added up: fills the header, except for the hash of the state
  // before the step, which may not be known yet.
  void finish_header(const std::vector<std::int16_t>& scales, StepHeader& header) const;

  const model::ContributionLayout& layout() const { return gan_->contributions(kind()); }
  SumLayout sums() const { return sum_layout(layout(), options_->gradient_sums()); }

 private:
  friend class StepComputer;
  friend class WorkerSteps;
  friend class WorkerTurns;

  // Memory for the contributions of so many more micro-batches, behind those that have it: vectors
  // of layout().size elements side by side.
  void add_memory(std::shared_ptr<float> memory, std::size_t micro_batches) {
    blocks_.push_back({std::move(memory), micro_batches});
  }
  float* contribution(std::size_t micro_batch) const;
  // Those of the first micro-batches.
  std::vector<model::Vectors> contributions(std::size_t micro_batches) const;
  // Numbers of the micro-batches whose contributions are this replica's: a micro-batch in parts is
  // contributed by the owner of the first.
  std::vector<std::uint32_t> contributed() const;
  // The contributions of micro-batch computed() stand in its memory, made from its events.
  void note_computed();
  runtime::Hash128 hash_of(std::size_t micro_batch, const std::vector<std::int16_t>& scales) const;

  const model::Gan* gan_;
  const TrainingOptions* options_;
  std::shared_ptr<IterationShare> iteration_;
  std::uint32_t slot_;
  struct Block {
    std::shared_ptr<float> memory;  // the backend's
    std::size_t micro_batches = 0;
  };
  std::vector<Block> blocks_;  // of all micro-batches, those being computed included
  std::size_t computed_ = 0;
  std::size_t had_ = 0;      // own(), when it was last looked at
  std::int64_t final_from_;  // of the own micro-batches, as far as they are computed
  std::uint64_t events_ = 0, event_sum_ = 0;  // of the header
};

}  // namespace troupe::pipeline
