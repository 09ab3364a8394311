#pragma once

// Computes a replica's shares of steps with all its threads, in short turns, so that the replica
// can handle messages between them.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/gan.h"
#include "pipeline/steps/step_share.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// One thread calls. The team's threads compute one micro-batch each at a time, or one of the
// backend's groups of them; if a single one is left, they compute it together.
class StepComputer {
 public:
  // `team` has prepared its threads for the backend (Backend::prepare_thread). Gan, options and
  // team outlive the computer. Memory, however many steps are under way: one GanStream per thread
  // of the team, and in the backend's memory one image batch per micro-batch of an iteration if the
  // schedule has d_fake or d_both, and the contribution vectors that retire() brought back. With
  // rounds, on the host, one GanStream per micro-batch, so that each goes on where it was.
  StepComputer(const model::Gan& gan, const TrainingOptions& options, runtime::ThreadTeam& team);

  // Before the first step, and whenever something else than apply() with optimisers() has changed
  // the state: on a device, gives it the weights and what the optimisers keep.
  void place(const TrainingState& state);
  const PlacedOptimisers& optimisers() const { return optimisers_; }

  // Work for `step` that needs only what slot_access(..).prepare_reads names, as far as memory
  // allows: all fakes, or one group's forward passes of a generator step per thread. One call is
  // one turn of at most one group per thread; false when there is nothing (more) to do. Only the
  // next step to be computed can be prepared: computing another one loses the prepared work.
  bool prepare(const TrainingState& state, const StepShare& step);

  // One turn of the step's computation, at most one group per thread; false when it was
  // complete before the call. A device has computed the replica's own micro-batches when the turn
  // that completes them ends. In that turn `final_from` is called on this thread: elements from
  // there to the end are computed for all of them. The numbers fall, and need not reach 0, as
  // another thread may finish last. The parts of `state` in slot_access(..).reads must stay the
  // same over all turns of a step, and those in prepare_reads since prepare(); the rest may change.
  bool compute(const TrainingState& state, StepShare& step,
               const model::FinalFrom& final_from = {});

  // Drops prepared work, which is then made again when needed. Call it after
  // StepShare::take_over().
  void forget_prepared() { prepared_step_.reset(); }

  // The step is applied, or never will be: its memory serves later ones.
  void retire(StepShare step);

 private:
  // Micro-batches that one thread computes side by side, as indices of the step's.
  struct Part {
    std::size_t first = 0, count = 0;
  };
  model::GanParameters parameters_of(const TrainingState& state) const;
  // Without contributions.
  std::vector<model::GanMicroBatch> micro_batches_of(const StepShare& step, const Part& part) const;
  void prepare_part(const TrainingState& state, const StepShare& step, const Part& part);
  void compute_part(const TrainingState& state, StepShare& step, const Part& part,
                    const model::FinalFrom* final_from);
  // For the contributions of a part to any step.
  std::shared_ptr<float> take_memory();
  // The most micro-batches of a turn.
  std::size_t at_once() const { return static_cast<std::size_t>(team_.threads()) * group_; }
  // Calls work(part, thread) for the parts of a turn: at once, or, for one, here, and the others
  // help with it.
  template <class Work>
  void take_turn(const Part& turn, const Work& work);
  model::GanStream& stream_of(const Part& part) const {
    return *streams_[part.first / group_ % streams_.size()];
  }
  void make_room_for_images(std::size_t micro_batches);
  void make_room_for_rounds(std::size_t micro_batches);

  const model::Gan& gan_;
  const TrainingOptions& options_;
  runtime::ThreadTeam& team_;
  const std::size_t group_;                                 // the backend's
  std::size_t contribution_bytes_ = 0;                      // of the schedule's largest
  std::vector<std::unique_ptr<model::GanStream>> streams_;  // one per thread, and those of rounds
  PlacedOptimisers optimisers_;
  // Fakes per micro-batch, from when they are made until their step is computed.
  std::vector<std::shared_ptr<std::byte>> images_;
  std::vector<std::shared_ptr<float>> spare_;  // as take_memory() gives it
  // The step whose first prepared_ micro-batches are prepared.
  std::optional<std::uint64_t> prepared_step_;
  std::size_t prepared_ = 0;
};

}  // namespace troupe::pipeline
