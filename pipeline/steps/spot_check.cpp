#include "pipeline/steps/spot_check.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {

std::optional<SpotCheck> SpotChecks::of(std::uint64_t iteration) const {
  if (every == 0 || members.size() < 2 || owners.empty()) return std::nullopt;
  using runtime::mix64;
  // One iteration of each window is drawn, so that checks are `every` steps apart on average. The
  // witness is another member than the owner: the same machine would make the same mistake.
  const std::uint64_t window = std::max<std::uint64_t>(every / slots, 1);
  std::uint64_t drawn = mix64(seed ^ mix64(iteration / window));
  const auto draw = [&](std::uint64_t below) {
    drawn = mix64(drawn);
    return static_cast<std::uint32_t>(drawn % below);
  };
  const std::uint64_t place = drawn % window;
  if (iteration % window != place) return std::nullopt;
  SpotCheck check;
  check.slot = draw(slots);
  check.micro_batch = draw(owners.size());
  check.owner = owners[check.micro_batch];
  const auto owner = std::find(members.begin(), members.end(), member_of(check.owner));
  CHECK(owner != members.end(), "owners are of the members");
  const auto at = static_cast<std::size_t>(owner - members.begin());
  const std::uint32_t other = members[(at + 1 + draw(members.size() - 1)) % members.size()];
  check.witness = other * replicas_per_member + draw(replicas_per_member);
  return check;
}

}  // namespace troupe::pipeline
