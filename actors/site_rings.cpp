#include "actors/site_rings.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::actors {

SiteRings::Ring* SiteRings::find(const pipeline::View& view, std::uint64_t next,
                                 std::uint32_t worker, std::uint64_t step) {
  const pipeline::Sites& sites = options_.sites;
  const std::uint64_t iteration = step / options_.steps, outer = next / options_.turns;
  // Another member may have the sums of an outer step before this one has. A worker that has had
  // its turn goes on with the next iteration.
  if (iteration < outer || iteration > outer + 1) return nullptr;
  if (worker >= sites.workers_in(iteration)) return nullptr;
  const auto found = rings_.find({iteration, worker});
  if (found != rings_.end()) return &found->second;
  const auto replicas = sites.replicas_of(view, iteration, worker);
  RingSumOptions options;
  std::vector<std::uint32_t> own;
  for (const std::uint32_t replica : replicas) {
    if (is_own(replica)) own.push_back(replica % sites.replicas_per_member);
  }
  if (own.empty() || replicas.size() == 1) return nullptr;
  options.replicas = static_cast<std::uint32_t>(own.size());
  options.member = member_;
  options.micro_batches = options_.micro_batches;
  options.events = options_.events;
  options.slot_floats.assign(options_.slots, 0);
  const pipeline::View of_site = sites.view_of(view, replicas);
  RingSum sum(options);
  sum.begin_at(iteration * options_.steps);
  sum.enter(of_site);
  return &rings_.try_emplace({iteration, worker}, Ring{std::move(sum), of_site.ring, own})
              .first->second;
}

std::set<std::uint32_t> SiteRings::next_in_rings(const pipeline::View& view) const {
  std::set<std::uint32_t> next;
  const auto add = [&](std::uint64_t iteration) {
    for (std::uint32_t worker = 0; worker < options_.sites.workers_in(iteration); ++worker) {
      const auto replicas = options_.sites.replicas_of(view, iteration, worker);
      if (std::ranges::none_of(replicas, [&](std::uint32_t each) { return is_own(each); }))
        continue;
      const auto ring = options_.sites.view_of(view, replicas).ring;
      const auto here = std::ranges::find(ring, member_);
      next.insert(here + 1 == ring.end() ? ring.front() : *(here + 1));
    }
  };
  const pipeline::ShortIteration& few = options_.sites.short_iteration;
  std::vector<std::uint64_t> from{view.first_step / options_.turns};
  for (const auto& assignment : view.later) from.push_back(assignment.from);
  for (const std::uint64_t iteration : from) {
    add(iteration);
    if (few.every > 0) add(iteration / few.every * few.every + few.every - 1);
    if (few.is(iteration)) add(iteration + 1);
  }
  next.erase(member_);
  return next;
}

std::string SiteRings::waiting_for() const {
  for (const auto& [key, ring] : rings_) {
    const std::string what = ring.sum.waiting_for();
    if (!what.empty()) return fmt::format("worker {}: {}", key.second, what);
  }
  return {};
}

}  // namespace troupe::actors
