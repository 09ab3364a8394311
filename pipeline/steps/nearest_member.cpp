#include "pipeline/steps/nearest_member.h"

#include <set>

#include "runtime/base/network_range.h"

namespace troupe::pipeline {

std::uint32_t nearest_member(const Roster& roster, std::uint32_t member) {
  std::set<std::uint32_t> present = roster.membership.present();
  std::erase_if(present, [&](std::uint32_t each) { return roster.members[each].parts; });
  std::uint32_t nearest = *present.begin();
  const auto nearness = [&](std::uint32_t each) {
    return runtime::NetworkRange::bits_alike(roster.members[each].host,
                                             roster.members[member].host);
  };
  for (const std::uint32_t each : present) {
    if (roster.members[each].leaves_because) continue;
    const bool first_leaves = roster.members[nearest].leaves_because.has_value();
    if (first_leaves || nearness(each) > nearness(nearest)) nearest = each;
  }
  return nearest;
}

}  // namespace troupe::pipeline
