#pragma once

// The iteration that ends an epoch with fewer micro-batches than the others have. With M for all of
// them, this is the one place that tells how many an iteration takes. Pure functions of integers.

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::pipeline {

struct ShortIteration {
  std::uint64_t every = 0;          // iterations, of which the last one is short; 0: none is
  std::uint32_t micro_batches = 0;  // that it takes, 1 to M - 1

  bool is(std::uint64_t iteration) const { return every > 0 && iteration % every == every - 1; }
  // How many micro-batches an iteration takes where the others take `all`, which is M.
  std::uint32_t micro_batches_in(std::uint64_t iteration, std::uint32_t all) const {
    return is(iteration) ? micro_batches : all;
  }
  // The owner of each of its micro-batches, where `owners` are those of M. Every one has the owner
  // of the micro-batch at the same part of the way through M, so that each owner keeps its share.
  std::vector<std::uint32_t> owners_in(std::uint64_t iteration,
                                       std::span<const std::uint32_t> owners) const {
    if (!is(iteration)) return {owners.begin(), owners.end()};
    std::vector<std::uint32_t> few(micro_batches);
    for (std::size_t i = 0; i < few.size(); ++i) few[i] = owners[i * owners.size() / few.size()];
    return few;
  }
};

}  // namespace troupe::pipeline
