#include "pipeline/steps/view.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/micro_batch.h"
#include "pipeline/steps/ring_schedule.h"
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

bool View::is_new(std::uint32_t member) const {
  return std::find(newcomers.begin(), newcomers.end(), member) != newcomers.end();
}

bool View::gives(std::uint32_t member) const {
  if (std::none_of(ring.begin(), ring.end(), [&](std::uint32_t each) { return lags(each); })) {
    return false;
  }
  const auto has_it = [&](std::uint32_t each) { return !is_new(each) && !lags(each); };
  const auto first = std::find_if(ring.begin(), ring.end(), has_it);
  return first != ring.end() && *first == member;
}

std::optional<std::uint32_t> View::gives_to(std::uint32_t member) const {
  if (!lags(member) && !gives(member)) return std::nullopt;
  const std::size_t here = position_of(member);
  for (std::size_t i = 1; i < ring.size(); ++i) {
    const std::uint32_t next = ring[(here + i) % ring.size()];
    if (gives(next)) return std::nullopt;
    if (lags(next)) return next;
  }
  return std::nullopt;
}

const std::vector<std::uint32_t>& View::owners_in(std::uint64_t iteration) const {
  const std::vector<std::uint32_t>* found = &owners;
  for (const Assignment& assignment : later) {
    if (assignment.from <= iteration) found = &assignment.owners;
  }
  return *found;
}

bool View::shares_out(std::uint32_t micro_batches, std::uint32_t replicas_per_member) const {
  // A View from another node may be large.
  const std::set<std::uint32_t> members(ring.begin(), ring.end());
  const auto fits = [&](const std::vector<std::uint32_t>& of_all) {
    return of_all.size() == micro_batches &&
           std::all_of(of_all.begin(), of_all.end(), [&](std::uint32_t owner) {
             return members.contains(owner / replicas_per_member);
           });
  };
  return fits(owners) && std::all_of(later.begin(), later.end(),
                                     [&](const Assignment& each) { return fits(each.owners); });
}

std::uint32_t View::leader() const {
  CHECK(!ring.empty(), "a View has members");
  return *std::min_element(ring.begin(), ring.end());
}

SpotChecks View::checks(SpotChecks of_run, std::uint64_t iteration) const {
  of_run.members = ring;
  std::sort(of_run.members.begin(), of_run.members.end());
  of_run.owners = of_run.short_iteration.owners_in(iteration, owners_in(iteration));
  return of_run;
}

std::vector<std::uint32_t> ReplicaWork::micro_batches() const {
  std::vector<std::uint32_t> all = own;
  if (is_witness) all.push_back(check->micro_batch);
  return all;
}

ReplicaWork work_of(const View& view, const SpotChecks& of_run, std::uint64_t iteration,
                    std::uint32_t replica) {
  const SpotChecks checks = view.checks(of_run, iteration);
  ReplicaWork work{micro_batches_of(checks.owners, replica), checks.of(iteration)};
  work.is_witness = work.check && work.check->witness == replica;
  return work;
}

const char* fault_of(const View& view) {
  if (view.ring.empty() || view.owners.empty()) return "a View of nobody";
  if (view.reached.size() != view.ring.size()) return "a View that does not tell what all reached";
  const std::set<std::uint32_t> members(view.ring.begin(), view.ring.end());
  if (members.size() != view.ring.size()) return "a View with a member twice";
  if (!are_rows(view.rows, view.ring.size())) return "a View with rows of no ring";
  bool is_reached = false;
  for (std::size_t i = 0; i < view.ring.size(); ++i) {
    const std::uint64_t step = view.reached[i];
    if (step > view.first_step) return "a View behind what its members have reached";
    if (view.is_new(view.ring[i])) continue;
    if (view.first_step - step > 1) return "a View of members far behind it";
    is_reached = is_reached || step == view.first_step;
  }
  return is_reached ? nullptr : "a View from a step on that nobody has reached";
}

}  // namespace troupe::pipeline
