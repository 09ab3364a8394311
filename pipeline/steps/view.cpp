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

std::vector<std::uint32_t> View::next_of(std::uint32_t member) const {
  const BucketRoutes routes(static_cast<std::uint32_t>(ring.size()), rows);
  std::vector<std::uint32_t> members;
  for (const std::uint32_t position : routes.next_of(position_of(member))) {
    members.push_back(ring[position]);
  }
  return members;
}

namespace {

// Members of which some have the step that others lack.
struct Holders {
  std::vector<std::uint32_t> members;  // those that have it stand in front
  std::size_t having = 0;

  void add(std::uint32_t member, bool has_it) {
    members.insert(has_it ? members.begin() + static_cast<std::ptrdiff_t>(having) : members.end(),
                   member);
    having += has_it ? 1 : 0;
  }
  // Each that has it gives it to one that lacks it, all of these to as many others, and so on.
  void give(std::uint32_t member, std::vector<std::uint32_t>& given) const {
    const auto own = static_cast<std::size_t>(std::ranges::find(members, member) - members.begin());
    for (std::size_t givers = std::max<std::size_t>(having, 1); givers < members.size();
         givers *= 2) {
      if (own < givers && own + givers < members.size()) given.push_back(members[own + givers]);
    }
  }
};

}  // namespace

std::vector<std::uint32_t> View::gives_to(std::uint32_t member) const {
  Holders heads, own_row;  // the first of each row, and all of the member's
  const std::vector<std::uint32_t> firsts = rows.empty() ? std::vector<std::uint32_t>{0} : rows;
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    const std::size_t end = i + 1 < firsts.size() ? firsts[i + 1] : ring.size() + firsts.front();
    Holders row;
    for (std::size_t each = firsts[i]; each < end; ++each) {
      const std::size_t position = each % ring.size();
      if (!is_new(ring[position])) row.add(ring[position], reached[position] >= first_step);
    }
    if (row.members.empty()) continue;
    heads.add(row.members.front(), row.having > 0);
    if (std::ranges::count(row.members, member) > 0) own_row = std::move(row);
  }
  std::vector<std::uint32_t> given;
  heads.give(member, given);
  own_row.give(member, given);
  return given;
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
