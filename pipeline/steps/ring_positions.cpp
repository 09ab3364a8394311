#include "pipeline/steps/ring_positions.h"

#include <algorithm>
#include <utility>

namespace troupe::pipeline {

RingPositions::RingPositions(std::vector<std::uint32_t> first, RingCosts costs)
    : first_(first.begin(), first.end()), order_(std::move(first)), costs_(std::move(costs)) {}

void RingPositions::put(std::uint32_t newcomer, const std::vector<std::uint32_t>& nearest) {
  if (first_.contains(newcomer)) return;
  std::erase(order_, newcomer);
  costs_.lines_of_later.erase(newcomer);
  const auto last =
      std::find_first_of(order_.rbegin(), order_.rend(), nearest.begin(), nearest.end());
  if (last == order_.rend()) return order_.push_back(newcomer);
  if (const auto host = costs_.lines_of(*last)) costs_.lines_of_later[newcomer] = *host;
  order_.insert(last.base(), newcomer);
}

std::vector<std::uint32_t> RingPositions::ring_of(std::set<std::uint32_t> members) const {
  std::vector<std::uint32_t> ring;
  for (const std::uint32_t member : order_) {
    if (members.erase(member) > 0) ring.push_back(member);
  }
  ring.insert(ring.end(), members.begin(), members.end());
  return ring;
}

}  // namespace troupe::pipeline
