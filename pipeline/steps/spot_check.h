#pragma once

// Chooses micro-batches that two members compute and compare. Memory that flips bits, or a faulty
// processor, gives wrong gradients that nothing else would notice. One micro-batch is drawn every
// so many steps; all members find the same.
//
// A pure function of integers; any thread.

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/data/short_iteration.h"

namespace troupe::pipeline {

struct SpotCheck {
  std::uint32_t slot = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t owner = 0;    // replica whose micro-batch it is
  std::uint32_t witness = 0;  // replica of another member, which computes it as well
};

struct SpotChecks {
  std::uint64_t every = 0;  // steps, but in one iteration at most one; 0: never
  std::uint64_t seed = 0;
  std::uint32_t slots = 1;                // steps of an iteration
  std::uint32_t replicas_per_member = 1;  // numbered over all members in order
  std::vector<std::uint32_t> members;     // ascending; one has nobody to compare with
  std::vector<std::uint32_t> owners;      // replica of each micro-batch
  ShortIteration short_iteration{};       // of the run

  std::optional<SpotCheck> of(std::uint64_t iteration) const;
  std::uint32_t member_of(std::uint32_t replica) const { return replica / replicas_per_member; }
};

}  // namespace troupe::pipeline
