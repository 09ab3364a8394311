#pragma once

// How the workers of a study, or the nodes of one of its pools, are shared out among the runs that
// go on.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::study {

// How many workers each of the runs has, the first ones one more where they cannot be equal, and
// each `least` at least.
std::vector<std::uint32_t> worker_shares(std::uint32_t workers, std::size_t runs,
                                         std::uint32_t least = 1);

// The members that a run has besides those it began with.
struct RunMembers {
  std::uint32_t here = 0;     // on their way to it or in it
  std::uint32_t leaving = 0;  // told to leave, and not gone yet
  bool takes_more = true;     // false: those that came failed
};

// A run's change now: so many of those that are here leave, or others come.
struct MemberChange {
  std::uint32_t leave = 0, come = 0;

  bool operator==(const MemberChange&) const = default;
};

// For each of the runs, in the order in which they began; `first`: how many of the workers each has
// begun with. Nobody comes before there is a place: all members and the first ones of all runs
// together are never more than `workers` because of it.
std::vector<MemberChange> member_changes(std::uint32_t workers, const std::vector<RunMembers>& runs,
                                         std::uint32_t first = 1);

}  // namespace troupe::study
