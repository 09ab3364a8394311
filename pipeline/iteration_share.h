#pragma once

// One replica's part of an iteration: its micro-batches, and what they contribute to each step of
// the schedule. Says nothing of who else there is; the integers it gives are its part of the sum.

#include <cstdint>
#include <memory>
#include <vector>

#include "model/gan.h"
#include "pipeline/dataset.h"
#include "pipeline/step_record.h"
#include "pipeline/training_state.h"
#include "runtime/base/buffer.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// The events of one micro-batch of the global batch.
struct MicroBatch {
  std::uint32_t index = 0;  // in [0, M)
  Batch events;
};

// What one replica adds to a step: integers of the contribution vector, and its header.
struct Contribution {
  StepHeader header;
  runtime::Buffer sums;  // int64 per element of the slot's contribution vector
};

// One thread calls; the team's threads compute, one micro-batch each at a time.
class IterationShare {
 public:
  // `team` has prepared its threads for the backend (Backend::prepare_thread). Gan, options and
  // team outlive the share. Memory: one GanStream per thread of the team, and per micro-batch one
  // contribution vector and one image batch.
  IterationShare(const model::Gan& gan, const TrainingOptions& options, runtime::ThreadTeam& team);

  // Takes the micro-batches of an iteration (possibly none); earlier ones are let go.
  void begin(std::uint64_t iteration, std::vector<MicroBatch> micro_batches);

  // Work of schedule position `slot` that needs only what slot_access(..).prepare_reads names, as
  // far as memory allows: all fakes, or the forward pass of one generator step per thread. One call
  // is one turn of at most one micro-batch per thread; false when there is nothing (more) to do.
  bool prepare(const TrainingState& state, std::uint32_t slot);

  // One turn of the step's computation, at most one micro-batch per thread; false when all were
  // computed before the call. `state` must be the same, at the same step, over all turns of a slot.
  bool compute(const TrainingState& state, std::uint32_t slot);

  // After compute() returned false: the integers with the given scales, and the header. Called
  // again with other scales for attempt 1, without computing anything anew. `state_hash` is that of
  // the state before the step.
  Contribution contribution(std::uint32_t slot, std::uint32_t attempt,
                            const std::vector<std::int16_t>& scales,
                            runtime::Hash128 state_hash) const;

  // Micro-batches computed in the slot at hand; for progress and tests.
  std::size_t computed() const { return computed_; }

 private:
  struct Work {
    MicroBatch micro_batch;
    std::vector<float> images;         // fakes, in the slot they are made for
    std::vector<float> contributions;  // of the slot at hand
  };
  void prepare_one(const TrainingState& state, std::uint32_t slot, Work& work, int stream);
  void compute_one(const TrainingState& state, Work& work, int stream, bool prepared);
  runtime::RandomPosition position(std::uint32_t slot, const Work& work) const;

  const model::Gan& gan_;
  const TrainingOptions& options_;
  runtime::ThreadTeam& team_;
  std::vector<std::unique_ptr<model::GanStream>> streams_;  // one per thread
  std::vector<Work> work_;
  std::uint64_t iteration_ = 0;
  std::uint32_t slot_ = 0;  // computed_ of work_, from the front, are computed for it
  std::size_t computed_ = 0;
  std::uint32_t prepared_slot_ = 0;  // prepared_ of work_, from the front, are prepared for it
  std::size_t prepared_ = 0;
};

}  // namespace troupe::pipeline
