#pragma once

// The owners of micro-batches. Pure functions of integers: the result is part of a View, and every
// member must find the same.

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::pipeline {

// The number of micro-batches, among `count`, that each member takes, in proportion to its speed
// (any unit; 0 takes none): floor of the exact share, the rest to the largest remainders, equal
// ones to the first. Sums to `count`. CHECKs that some speed is above 0 and that count x sum of
// speeds fits 64 bits.
std::vector<std::uint32_t> micro_batch_quotas(std::uint32_t count,
                                              std::span<const std::uint64_t> speeds);

// owner[index] for every micro-batch index: contiguous ranges of the sizes of the quotas. Where
// `parts` of them, more than one, are a worker that is made by a site (sites.h), nobody owns parts
// of two workers of which others own parts too, since it would make one behind the other: with as
// many members that can work as workers each worker has a range of them, about as fast
// as each other, and with fewer each worker has one member. Ranges are of members in the order of
// `by_site`, which names all that can work; empty: of their numbers. CHECKs that count is a
// multiple of parts.
std::vector<std::uint32_t> assign_micro_batches(std::uint32_t count,
                                                std::span<const std::uint64_t> speeds,
                                                std::uint32_t parts = 1,
                                                std::span<const std::uint32_t> by_site = {});

// The micro-batches of member `owner`, ascending.
std::vector<std::uint32_t> micro_batches_of(std::span<const std::uint32_t> owners,
                                            std::uint32_t owner);

// After a loss: members whose speed stays above 0 keep every micro-batch they own, so that nothing
// they computed is computed again. Those of members with speed 0 (the dead, the drained) and of
// owners beyond speeds.size() go one by one to the member furthest below its share; parts of a
// worker to one that keeps others of them, if any does.
std::vector<std::uint32_t> reassign_micro_batches(std::span<const std::uint32_t> owners,
                                                  std::span<const std::uint64_t> speeds,
                                                  std::uint32_t parts = 1);

}  // namespace troupe::pipeline
