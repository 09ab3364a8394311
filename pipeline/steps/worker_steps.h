#pragma once

// What logical workers contribute to a step of kind kWorkers: each trains alone from the state
// between members, or where workers take turns from its own, by the same steps, sums and optimisers
// as a run in one process (pipeline/steps/strategy.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pipeline/steps/step_computer.h"
#include "pipeline/steps/step_share.h"
#include "pipeline/steps/training_state.h"

namespace troupe::pipeline {

// One thread; the computer's team helps. Memory, besides the computer's: one training state.
class WorkerSteps {
 public:
  // `options` are those between members, and `computer` computes with `of_worker`,
  // options_of_worker() of them. All outlive it.
  WorkerSteps(const model::Gan& gan, const TrainingOptions& options,
              const TrainingOptions& of_worker, StepComputer& computer);

  // One turn: a turn of the computer, or the end of one step of one worker. False: the share was
  // complete before. `state` is the one before the step, and the same in all of its turns. A worker
  // that is under way goes on where it was, whatever the share has taken over or given up.
  bool compute(const TrainingState& state, StepShare& share);

  // The end of a step of a worker whose other parts are those of other replicas: what this one
  // contributes to its sums, with these scales. All that have parts of the worker are at the same
  // state. Nothing is computed until the step has ended (end_shared()).
  struct SharedStep {
    std::uint64_t iteration = 0;  // of the outer steps, or of the worker's turn
    std::uint32_t worker = 0;
    StepShare step;
    std::vector<std::int16_t> scales;
    runtime::Hash128 state;
  };
  // Once a step.
  std::optional<SharedStep> take_shared();
  // Sums of that step, from all replicas. The scales of another attempt; nothing: it has ended. An
  // Error (kDiverged): the states differ.
  using Again = std::optional<std::vector<std::int16_t>>;
  runtime::Result<Again> end_shared(const StepRecord& record);
  // The step is retired, or is made again from the state before the outer step.
  void retire(StepShare step) { computer_.retire(std::move(step)); }
  // The worker under way begins anew.
  void forget();

  // One turn at what a worker that takes turns makes of its events of an iteration, of which these
  // parts are the replica's. Its contributions when that is complete, else null. The worker in
  // `state` is the same in all turns. Another worker or iteration begins anew.
  std::shared_ptr<float> compute(const TrainingState& state, std::uint64_t iteration,
                                 std::span<const MicroBatch> parts);
  bool is_at(std::uint64_t iteration, std::uint32_t worker) const {
    return worker_ && worker_->step == iteration && worker_->number == worker;
  }
  // The part that is made of the worker under way, from 0 to 1.
  double progress() const;

 private:
  // A worker under way. Without initialisers, behind which clang++ takes it for one that cannot be
  // made; emplace() sets all to 0.
  struct Worker {
    std::uint64_t step;       // of the outer steps, or the iteration of its turn
    std::uint32_t number;     // of the workers
    std::uint32_t iteration;  // of its H, the one under way
    TrainingState state;
    std::shared_ptr<IterationShare> events;  // of that iteration
    std::optional<StepShare> under_way;
    bool shared;                        // others have parts of it
    std::vector<double> losses;         // sums, per loss that is told
    std::vector<std::uint64_t> counts;  // how many steps each is of
    // A tensor of the contributions that has become unusable in it, and a number of that kind; the
    // rest is not computed.
    std::optional<std::pair<std::size_t, float>> spoiled;
  };

  // `from` has the networks that the worker begins with.
  template <class From>
  std::shared_ptr<float> advance(const From& from, std::uint64_t iteration,
                                 std::span<const MicroBatch> parts);
  template <class From>
  void begin(const From& from, std::uint64_t iteration, std::uint32_t number);
  void begin_step(std::span<const MicroBatch> parts);
  void end_step();
  void note_losses(const StepRecord& record, std::uint32_t slot);
  bool is_done() const;
  std::uint32_t number_of(const MicroBatch& part) const { return part.index / options_.parts(); }
  // Applies sums of the worker's step, if they can be used. As of end_shared().
  Again judge_and_apply(const StepRecord& record);
  void spoil(const StepHeader& header);
  template <class From>
  std::vector<float> contributions_of(const From& from) const;

  const model::Gan& gan_;
  const TrainingOptions& options_;
  const TrainingOptions& of_worker_;
  StepComputer& computer_;
  StateLayout layout_;
  std::optional<Worker> worker_;
};

}  // namespace troupe::pipeline
