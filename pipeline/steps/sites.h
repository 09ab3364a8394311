#pragma once

// The replicas that make a worker's iterations together, where a worker has several parts
// (WorkerOptions::parts). Pure functions; any thread.

#include <cstdint>
#include <vector>

#include "pipeline/data/short_iteration.h"
#include "pipeline/steps/view.h"

namespace troupe::pipeline {

struct Sites {
  std::uint32_t workers = 0;  // 0: the run has no sites
  std::uint32_t parts = 1;    // of each
  std::uint32_t replicas_per_member = 1;
  ShortIteration short_iteration{};  // in parts

  // The run has so many in this iteration.
  std::uint32_t workers_in(std::uint64_t iteration) const {
    return short_iteration.micro_batches_in(iteration, workers * parts) / parts;
  }
  // The replicas that have parts of the worker; ascending. CHECKs that there is such a worker, and
  // that the View has owners of all parts.
  std::vector<std::uint32_t> replicas_of(const View& view, std::uint64_t iteration,
                                         std::uint32_t worker) const;
  // The View with their members alone, in one ring.
  View view_of(const View& view, const std::vector<std::uint32_t>& replicas) const;
  // Whether the replica has parts of a worker that others have parts of, in this iteration.
  bool shares(const View& view, std::uint64_t iteration, std::uint32_t replica) const;
};

}  // namespace troupe::pipeline
