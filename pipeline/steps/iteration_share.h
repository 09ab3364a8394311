#pragma once

// One replica's micro-batches of one iteration, and perhaps one of another replica that it computes
// in one slot to compare (pipeline/steps/spot_check.h).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/data/dataset.h"

namespace troupe::pipeline {

// The events of one micro-batch of the global batch.
struct MicroBatch {
  std::uint32_t index = 0;  // in [0, M)
  Batch events;
};

// One thread changes it; while it does not, any number read it.
class IterationShare {
 public:
  // What of the iteration's spot check is the replica's part.
  struct Check {
    std::uint32_t slot = 0;
    std::uint32_t micro_batch = 0;
  };

  // Possibly of no micro-batches. With a check of a micro-batch that is not the replica's own, that
  // one is the last of them.
  IterationShare(std::uint64_t iteration, std::vector<MicroBatch> micro_batches,
                 std::optional<Check> check = std::nullopt, bool witness = false);

  std::uint64_t iteration() const { return iteration_; }
  // Its own.
  std::size_t size() const { return micro_batches_.size() - (witness_ ? 1 : 0); }
  // Whether the micro-batch is its own.
  bool has(std::uint32_t index) const;
  // Its own and the other's, which stands behind them.
  std::size_t held() const { return micro_batches_.size(); }
  // Of these the ones whose events are still here.
  std::size_t with_events() const { return held() - released_; }
  // Those to compute in a slot, from the first on.
  std::size_t computed_in(std::uint32_t slot) const;
  // Which of them is compared in the slot.
  std::optional<std::size_t> checked_in(std::uint32_t slot) const;
  const MicroBatch& micro_batch(std::size_t i) const { return micro_batches_[i]; }

  // The replica has these too from now on, behind its own, and computes nothing to compare. Every
  // StepShare of the iteration is to be told (StepShare::take_over()).
  void take_over(std::vector<MicroBatch> micro_batches);

  // Lets go of the events of the first `count` micro-batches, which no step will read again; their
  // indices stay.
  void release_events(std::size_t count);

 private:
  std::uint64_t iteration_;
  std::vector<MicroBatch> micro_batches_;
  std::optional<Check> check_;
  bool witness_;
  std::size_t released_ = 0;  // of the events, from the first on
};

}  // namespace troupe::pipeline
