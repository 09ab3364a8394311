#pragma once

// One replica's part in turns (pipeline/steps/strategy.h): computes what its workers make of their
// events, keeps it until their turns come, and says which of them may have a turn when.
//
// A worker's turn of an iteration is computed from its state behind the turn before, which stays
// the same until then. So it does not matter for its bits when and where it is computed, and a
// replica computes at one worker while the turns of others are applied.
//
// Where others have parts of a worker (WorkerOptions::parts), all of them find its contributions.
// The owner of its first part contributes and offers them; each owner brings the events of its own.

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
  // iteration, wait for these, or wait for a turn before. Where others have parts of any of them,
  // they are computed in ascending order, so that nobody waits for one that waits for it; and not
  // while a step of one waits for others (WorkerSteps::take_shared()).
  bool compute(const TrainingState& state, const IterationShare& share);
  // So long that took.
  void note_time(double seconds) { spent_ += seconds; }
  // Nothing of the share is left to compute.
  bool has_all_of(const TrainingState& state, const IterationShare& share) const;

  // Whether a part of a worker is the replica's in an iteration, by its number among all.
  using IsOwn = std::function<bool(std::uint64_t, std::uint32_t)>;

  // The replica's share of the next step of `state`: its parts of those workers whose turn it is.
  // None: one of them is not computed yet.
  std::optional<StepShare> share_of_turn(const TrainingState& state, const IsOwn& is_own) const;
  // The workers that may have the turn behind the next step of `state`: of those whose first part
  // is its own the ones that are thought to be ready first, as many as that turn takes. Ascending.
  std::vector<TurnOffer> offers(const TrainingState& state, const IsOwn& is_own) const;

  // The state has gone on: what was applied is not needed any more.
  void forget(const TrainingState& state);
  // All workers begin their turns anew; so do the steps.
  void begin_anew();

 private:
  // A worker that has computed what it contributes to its turn of the iteration.
  struct Ready {
    std::uint64_t iteration = 0;
    std::uint32_t worker = 0;
    std::vector<MicroBatch> parts;  // the replica's, without images and conditions
    std::shared_ptr<float> contributions;
  };
  std::uint32_t worker_of(const MicroBatch& part) const { return part.index / options_.parts(); }
  const Ready* find(std::uint64_t iteration, std::uint32_t worker) const;
  // Its turn of the iteration is over, or it is ready for it.
  bool is_done(const TrainingState& state, std::uint64_t iteration, std::uint32_t worker) const;
  std::vector<MicroBatch> parts_of(const IterationShare& share, std::uint32_t worker) const;
  // Others have parts of a worker of it.
  bool is_shared(const IterationShare& share) const;
  bool has_parts(const IsOwn& is_own, std::uint64_t iteration, std::uint32_t worker) const;
  std::optional<std::uint32_t> to_compute(const TrainingState& state,
                                          const IterationShare& share) const;

  const model::Gan& gan_;
  const TrainingOptions& options_;
  WorkerSteps& steps_;
  std::vector<Ready> ready_;
  double spent_ = 0.0, last_ = 0.0;  // seconds: at the worker under way, and at the one before
};

}  // namespace troupe::pipeline
