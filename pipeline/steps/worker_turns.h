#pragma once

// One replica's part in turns (pipeline/steps/strategy.h): computes what its workers make of their
// events, keeps it until their turns come, and says which of them may have a turn when.
//
// A worker's turn of an iteration is computed from its state behind the turn before, which stays
// the same until then. So it does not matter for its bits when and where it is computed, and a
// replica computes at one worker while the turns of others are applied.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/gan.h"
#include "pipeline/steps/iteration_share.h"
#include "pipeline/steps/step_share.h"
#include "pipeline/steps/training_state.h"
#include "pipeline/steps/worker_steps.h"

namespace troupe::pipeline {

// One thread, that of `steps`. Memory, besides theirs: contributions of workers that wait for their
// turns.
class WorkerTurns {
 public:
  // All outlive it.
  WorkerTurns(const model::Gan& gan, const TrainingOptions& options, WorkerSteps& steps);

  // One turn of computing at a worker of the share. False: all of them have had their turns of its
  // iteration, wait for these, or wait for a turn before.
  bool compute(const TrainingState& state, const IterationShare& share);
  // So long that took.
  void note_time(double seconds) { spent_ += seconds; }
  // Nothing of the share is left to compute.
  bool has_all_of(const TrainingState& state, const IterationShare& share) const;

  // Whether a worker is the replica's in an iteration.
  using IsOwn = std::function<bool(std::uint64_t, std::uint32_t)>;

  // The replica's share of the next step of `state`: those workers whose turn it is that are its
  // own. None: one of them is not computed yet.
  std::optional<StepShare> share_of_turn(const TrainingState& state, const IsOwn& is_own) const;
  // The workers that may have the turn behind the next step of `state`: of its own those that are
  // thought to be ready first, as many as that turn takes. Ascending.
  std::vector<TurnOffer> offers(const TrainingState& state, const IsOwn& is_own) const;

  // The state has gone on: what was applied is not needed any more.
  void forget(const TrainingState& state);

 private:
  // A worker that has computed what it contributes to its turn of the iteration.
  struct Ready {
    std::uint64_t iteration = 0;
    MicroBatch events;  // without images and conditions
    std::shared_ptr<float> contributions;
  };
  const Ready* find(std::uint64_t iteration, std::uint32_t worker) const;
  // It can be computed: its turn before is over, this one is not, and it is not ready.
  bool is_open(const TrainingState& state, std::uint64_t iteration, std::uint32_t worker) const;
  const MicroBatch* to_compute(const TrainingState& state, const IterationShare& share) const;

  const model::Gan& gan_;
  const TrainingOptions& options_;
  WorkerSteps& steps_;
  std::vector<Ready> ready_;
  double spent_ = 0.0, last_ = 0.0;  // seconds: at the worker under way, and at the one before
};

}  // namespace troupe::pipeline
