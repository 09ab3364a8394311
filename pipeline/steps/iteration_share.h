#pragma once

// One replica's micro-batches of one iteration, and perhaps one of another replica, which it
// computes in one slot to compare (pipeline/steps/spot_check.h).
//
// Three objects hold the same events, each for a time of its own:
//
//   IterationShare   the events of an iteration   until no step of it reads them any more
//   StepShare        their contributions          until the step is applied
//   actors' Flight   the messages of a step       until its record is complete

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/data/dataset.h"
#include "pipeline/steps/spot_check.h"

namespace troupe::pipeline {

// The events of one micro-batch of the global batch, or of one part of it (WorkerOptions::parts).
struct MicroBatch {
  std::uint32_t index = 0;  // in [0, M), or in M x parts
  Batch events;
};

// One thread changes it. While it does not, any number of threads may read.
class IterationShare {
 public:
  // `micro_batches` may be empty. `check`: the iteration's spot check. `witness`: the last of them
  // belongs to another replica and is computed to compare.
  IterationShare(std::uint64_t iteration, std::vector<MicroBatch> micro_batches,
                 std::optional<SpotCheck> check = std::nullopt, bool witness = false);

  std::uint64_t iteration() const { return iteration_; }
  // Number of its own micro-batches.
  std::size_t size() const { return micro_batches_.size() - (witness_ ? 1 : 0); }
  // True if the micro-batch is its own.
  bool has(std::uint32_t index) const;
  // Number of all, with the other replica's at the end.
  std::size_t held() const { return micro_batches_.size(); }
  // Number of those whose events are still here.
  std::size_t with_events() const { return held() - released_; }
  // Number of those to compute in a slot, from the first on.
  std::size_t computed_in(std::uint32_t slot) const;
  // Index of the one that is compared in the slot.
  std::optional<std::size_t> checked_in(std::uint32_t slot) const;
  const MicroBatch& micro_batch(std::size_t i) const { return micro_batches_[i]; }

  // Appends these to the replica's own. From then on it computes none to compare. The caller tells
  // every StepShare of the iteration (StepShare::take_over()).
  void take_over(std::vector<MicroBatch> micro_batches);

  // Puts its own in the order of their indices. CHECKs that all have their events.
  void sort();

  // Lets go of the events of the first `count` micro-batches, which no step will read again; their
  // indices stay.
  void release_events(std::size_t count);

 private:
  std::uint64_t iteration_;
  std::vector<MicroBatch> micro_batches_;
  std::optional<SpotCheck> check_;
  bool witness_;
  std::size_t released_ = 0;  // of the events, from the first on
};

}  // namespace troupe::pipeline
