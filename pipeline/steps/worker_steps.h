#pragma once

// What logical workers contribute to a step of kind kWorkers: each trains alone from the state
// between members, or where workers take turns from its own, by the same steps, sums and optimisers
// as a run in one process (pipeline/steps/strategy.h).

#include <cstdint>
#include <memory>
#include <optional>
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

  // One turn at what a worker that takes turns makes of its events of an iteration. Its
  // contributions when that is complete, else null. The worker in `state` is the same in all turns.
  // Another worker or iteration begins anew.
  std::shared_ptr<float> compute(const TrainingState& state, std::uint64_t iteration,
                                 const MicroBatch& events);
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
    std::vector<double> losses;         // sums, per loss that is told
    std::vector<std::uint64_t> counts;  // how many steps each is of
    // A tensor of the contributions that has become unusable in it, and a number of that kind; the
    // rest is not computed.
    std::optional<std::pair<std::size_t, float>> spoiled;
  };

  // `from` has the networks that the worker begins with.
  template <class From>
  std::shared_ptr<float> advance(const From& from, std::uint64_t iteration,
                                 const MicroBatch& events);
  template <class From>
  void begin(const From& from, std::uint64_t iteration, std::uint32_t number);
  void begin_step(const Batch& events);
  void end_step();
  void note_losses(const StepRecord& record, std::uint32_t slot);
  bool is_done() const;
  // Sums with the scales that fit; nothing: they are of no use.
  std::optional<StepRecord> record_of(const StepShare& step, std::vector<std::int16_t> scales);
  void spoil(const StepHeader& header, const StepShare& step);
  template <class From>
  std::vector<float> contributions_of(const From& from, std::uint32_t events) const;

  const model::Gan& gan_;
  const TrainingOptions& options_;
  const TrainingOptions& of_worker_;
  StepComputer& computer_;
  StateLayout layout_;
  std::optional<Worker> worker_;
};

}  // namespace troupe::pipeline
