#include "pipeline/view.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace troupe::pipeline {

std::string text_of(const ViewId& id) { return fmt::format("{}.{}", id.term, id.number); }

std::uint32_t View::position_of(std::uint32_t member) const {
  const auto found = std::find(ring.begin(), ring.end(), member);
  CHECK(found != ring.end(), "a member of the View");
  return static_cast<std::uint32_t>(found - ring.begin());
}

bool View::has(std::uint32_t member) const {
  return std::find(ring.begin(), ring.end(), member) != ring.end();
}

bool View::gives(std::uint32_t member) const {
  const auto has_it = [&](std::uint64_t next) { return next == first_step; };
  if (std::all_of(reached.begin(), reached.end(), has_it)) return false;
  const auto first = std::find_if(reached.begin(), reached.end(), has_it);
  return first != reached.end() && ring[static_cast<std::size_t>(first - reached.begin())] == member;
}

std::uint32_t View::leader() const {
  CHECK(!ring.empty(), "a View has members");
  return *std::min_element(ring.begin(), ring.end());
}

SpotChecks View::checks(SpotChecks of_run) const {
  of_run.members = ring;
  std::sort(of_run.members.begin(), of_run.members.end());
  of_run.owners = owners;
  return of_run;
}

}  // namespace troupe::pipeline
