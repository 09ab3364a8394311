#pragma once

// What a replica computes and offers where workers take turns (pipeline/steps/worker_turns.h), with
// the shares of iterations that it computes of: the state's iteration and the next one.
//
// One thread, that of `steps`.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/iteration_feed.h"
#include "pipeline/steps/worker_turns.h"
#include "runtime/base/clock.h"

namespace troupe::actors {

// The workers in the order of their turns from step 0 on, as far as it is set; null: of none.
using TurnsInOrder = std::shared_ptr<const std::vector<std::uint32_t>>;

class TurnEngine {
 public:
  // All but `order` outlive it.
  TurnEngine(const model::Gan& gan, const pipeline::TrainingOptions& options,
             pipeline::WorkerSteps& steps, std::uint32_t replica, TurnsInOrder order)
      : options_(options),
        turns_(gan, options, steps),
        replica_(replica),
        order_(std::move(order)) {}

  // Those that are begun, in order.
  std::vector<IterationFeed::Share> shares() const { return {shares_.begin(), shares_.end()}; }
  bool has_begun() const { return !shares_.empty(); }

  struct Work {
    std::optional<pipeline::StepShare> contribution;  // to the state's next step
    bool computed = false;                            // at a worker
  };
  struct May {
    bool contribute = true, compute = true;
  };
  // The contribution where one is ready and it may, or else one turn of computing. Nothing is
  // contributed before the first events are here, so that iterations are begun in the order in
  // which the loader sends them. An Error (kLostPeers): the loader has sent what cannot be right.
  runtime::Result<Work> work(const pipeline::TrainingState& state, const pipeline::View& view,
                             IterationFeed& feed, May may,
                             const std::function<runtime::TimePoint()>& now);
  // So long it has waited for others that have parts of a worker.
  void note_time(double seconds) { turns_.note_time(seconds); }
  // For the header of the state's next step.
  std::vector<pipeline::TurnOffer> offers(const pipeline::TrainingState& state,
                                          const pipeline::View& view) const;
  // A step is applied to the state.
  void go_on(const pipeline::TrainingState& state);
  // Forgets all that it has begun.
  void begin_anew() {
    turns_.begin_anew();
    shares_.clear();
  }

 private:
  pipeline::WorkerTurns::IsOwn is_own(const pipeline::View& view) const;
  // The share whose workers are to be computed now; null: there is none, or its events are not
  // here.
  runtime::Result<IterationFeed::Share> share(const pipeline::TrainingState& state,
                                              IterationFeed& feed);

  const pipeline::TrainingOptions& options_;
  pipeline::WorkerTurns turns_;
  const std::uint32_t replica_;
  const TurnsInOrder order_;
  std::deque<IterationFeed::Share> shares_;
};

}  // namespace troupe::actors
