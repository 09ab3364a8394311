#include "pipeline/steps/sites.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace troupe::pipeline {

std::vector<std::uint32_t> Sites::replicas_of(const View& view, std::uint64_t iteration,
                                              std::uint32_t worker) const {
  const auto owners = short_iteration.owners_in(iteration, view.owners_in(iteration));
  const auto first = owners.begin() + std::ptrdiff_t{worker} * parts;
  CHECK(worker < workers_in(iteration) && owners.size() >= std::size_t{worker + 1} * parts,
        "a worker of the iteration");
  std::vector<std::uint32_t> replicas(first, first + parts);
  std::ranges::sort(replicas);
  replicas.erase(std::unique(replicas.begin(), replicas.end()), replicas.end());
  return replicas;
}

View Sites::view_of(const View& view, const std::vector<std::uint32_t>& replicas) const {
  View of_site;
  of_site.id = view.id;
  for (const std::uint32_t member : view.ring) {
    const auto is_its = [&](std::uint32_t replica) {
      return replica / replicas_per_member == member;
    };
    if (std::ranges::any_of(replicas, is_its)) of_site.ring.push_back(member);
  }
  return of_site;
}

bool Sites::shares(const View& view, std::uint64_t iteration, std::uint32_t replica) const {
  for (std::uint32_t worker = 0; worker < workers_in(iteration); ++worker) {
    const auto replicas = replicas_of(view, iteration, worker);
    if (replicas.size() > 1 && std::ranges::count(replicas, replica) > 0) return true;
  }
  return false;
}

}  // namespace troupe::pipeline
