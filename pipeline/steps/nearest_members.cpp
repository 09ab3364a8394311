#include "pipeline/steps/nearest_members.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/network_range.h"

namespace troupe::pipeline {
namespace {

// Those of `others` whose addresses begin most like that of `member`, in their order.
std::vector<std::uint32_t> nearest_of(const Roster& roster, std::vector<std::uint32_t> others,
                                      std::uint32_t member) {
  const auto nearness = [&](std::uint32_t each) {
    return runtime::NetworkRange::bits_alike(roster.members[each].host,
                                             roster.members[member].host);
  };
  if (others.empty()) return others;
  const auto most = nearness(*std::ranges::max_element(others, {}, nearness));
  std::erase_if(others, [&](std::uint32_t each) { return nearness(each) < most; });
  return others;
}

}  // namespace

std::uint32_t nearest_teacher(const Roster& roster, std::uint32_t member) {
  std::vector<std::uint32_t> all, staying;
  for (const std::uint32_t each : roster.membership.present()) {
    if (roster.members[each].parts) continue;
    all.push_back(each);
    if (!roster.members[each].leaves_because) staying.push_back(each);
  }
  return nearest_of(roster, staying.empty() ? all : staying, member).front();
}

void put_in_ring(Roster& roster, std::uint32_t member) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t each = 0; each < roster.members.size(); ++each) {
    if (each != member && !roster.members[each].host.empty()) others.push_back(each);
  }
  roster.membership.positions().put(member, nearest_of(roster, std::move(others), member));
}

}  // namespace troupe::pipeline
