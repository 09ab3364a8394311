#include "pipeline/steps/nearest_members.h"

#include <algorithm>

#include "runtime/base/network_range.h"

namespace troupe::pipeline {

std::vector<std::uint32_t> nearest_members(const Roster& roster, std::uint32_t member) {
  std::vector<std::uint32_t> all, staying;
  for (const std::uint32_t each : roster.membership.present()) {
    if (roster.members[each].parts) continue;
    all.push_back(each);
    if (!roster.members[each].leaves_because) staying.push_back(each);
  }
  const auto nearness = [&](std::uint32_t each) {
    return runtime::NetworkRange::bits_alike(roster.members[each].host,
                                             roster.members[member].host);
  };
  std::vector<std::uint32_t>& nearest = staying.empty() ? all : staying;
  const auto most = nearness(*std::ranges::max_element(nearest, {}, nearness));
  std::erase_if(nearest, [&](std::uint32_t each) { return nearness(each) < most; });
  return nearest;
}

}  // namespace troupe::pipeline
