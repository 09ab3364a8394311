#include "study/worker_shares.h"

#include <algorithm>

namespace troupe::study {

std::vector<std::uint32_t> worker_shares(std::uint32_t workers, std::size_t runs,
                                         std::uint32_t least) {
  const auto count = static_cast<std::uint32_t>(runs);
  std::vector<std::uint32_t> shares;
  for (std::uint32_t i = 0; i < count; ++i) {
    shares.push_back(std::max(least, workers / count + (i < workers % count ? 1 : 0)));
  }
  return shares;
}

std::vector<MemberChange> member_changes(std::uint32_t workers, const std::vector<RunMembers>& runs,
                                         std::uint32_t first) {
  const std::vector<std::uint32_t> wanted = worker_shares(workers, runs.size(), first);
  std::uint32_t taken = 0;
  for (const RunMembers& run : runs) taken += first + run.here + run.leaving;
  std::vector<MemberChange> changes(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::uint32_t others = wanted[i] - first;
    if (runs[i].here > others) changes[i].leave = runs[i].here - others;
    if (runs[i].here >= others || !runs[i].takes_more || taken >= workers) continue;
    changes[i].come = std::min(others - runs[i].here, workers - taken);
    taken += changes[i].come;
  }
  return changes;
}

}  // namespace troupe::study
