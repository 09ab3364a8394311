#include "pipeline/steps/membership.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/micro_batch.h"

namespace troupe::pipeline {

namespace {

// More steps than can be under way anywhere (actors/ring_sum.h), beside one more that a member may
// be behind the others. A site may have begun a worker of the next iteration, all steps of which
// are then begun.
constexpr std::uint64_t kMostBegun = 8;

}  // namespace

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Membership::Membership(MembershipOptions options)
    : options_(std::move(options)),
      weights_(options_.weights, options_.replicas_per_member),
      positions_(options_.ring, options_.costs),
      present_(options_.ring.begin(), options_.ring.end()) {
  CHECK(!present_.empty() && present_.size() == options_.ring.size(), "a ring of members");
  CHECK(options_.weights.size() >= options_.ring.size() * options_.replicas_per_member &&
            options_.steps_per_iteration > 0 && options_.min_members <= options_.ring.size(),
        "a weight for each replica, steps in an iteration, and members enough to begin");
}

const View& Membership::begin(std::uint64_t first_step) {
  CHECK(number_ == 0, "begins once");
  view_.id = {options_.term, ++number_};
  view_.first_step = first_step;
  view_.ring = options_.ring;
  view_.rows = positions_.rows_of(view_.ring);
  view_.reached.assign(view_.ring.size(), first_step);
  view_.owners = share_out(present_);
  for (const std::uint32_t member : present_) least_[member] = first_step;
  return view_;
}

Result<void> Membership::go_on_from(const View& view) {
  CHECK(number_ == 0, "begins once");
  // The View comes from another node, so it may name only replicas and members that the tables of
  // this run have.
  const auto is_replica = [&](std::uint64_t owner) { return owner < weights_.all().size(); };
  const auto fits = [&](const std::vector<std::uint32_t>& owners) {
    return owners.size() == options_.micro_batches &&
           std::all_of(owners.begin(), owners.end(), is_replica);
  };
  const bool is_ours =
      view.id.term < options_.term && fits(view.owners) &&
      std::all_of(view.later.begin(), view.later.end(),
                  [&](const View::Assignment& each) { return fits(each.owners); }) &&
      std::all_of(view.ring.begin(), view.ring.end(), [&](std::uint32_t member) {
        return is_replica(std::uint64_t{member} * options_.replicas_per_member);
      });
  if (!is_ours) {
    return Error{ErrorKind::kLostPeers,
                 fmt::format("View {} is none that this run can have had before term {}",
                             text_of(view.id), options_.term)};
  }
  view_ = view;
  present_ = {view.ring.begin(), view.ring.end()};
  // One that has not heard of the View may be about to finish what it had begun before it.
  for (const std::uint32_t member : present_) {
    const std::uint64_t reached = view.reached[view.position_of(member)];
    least_[member] = reached - std::min<std::uint64_t>(reached, 1);
  }
  for (const std::uint32_t member : view.newcomers) taught_until_[member] = view.first_step;
  changing_ = interrupts_ = true;
  ++number_;
  return {};
}

std::optional<ViewId> Membership::change() const {
  if (!changing_) return std::nullopt;
  return ViewId{options_.term, number_};
}

std::set<std::uint32_t> Membership::participants() const {
  std::set<std::uint32_t> all = halting();
  if (parting_) all.erase(*parting_);
  return all;
}

std::set<std::uint32_t> Membership::halting() const {
  std::set<std::uint32_t> all = present_;
  all.insert(joining_.begin(), joining_.end());
  return all;
}

View Membership::view_with(std::uint32_t newcomer) const {
  View view = view_;
  std::set<std::uint32_t> members = participants();
  members.insert(newcomer);
  view.ring = positions_.ring_of(std::move(members));
  view.rows = positions_.rows_of(view.ring);
  view.reached.assign(view.ring.size(), view.first_step);
  view.newcomers = {newcomer};
  return view;
}

std::vector<std::uint32_t> Membership::not_halted() const {
  std::vector<std::uint32_t> members;
  if (!changing_) return members;
  for (const std::uint32_t member : halting()) {
    if (!heard_.contains(member)) members.push_back(member);
  }
  return members;
}

void Membership::admit(std::uint32_t member) {
  CHECK(!present_.contains(member) && number_ > 0, "a member joins once, and after the first View");
  joining_.insert(member);
  change_anew();
}

void Membership::change_anew() {
  changing_ = true;
  heard_.clear();
  ++number_;
}

void Membership::share_anew(std::vector<std::uint64_t> weights) {
  CHECK(number_ > 0 && !present_.empty(), "after the first View");
  weights_.set(std::move(weights));
  shares_anew_ = true;
  change_anew();
}

void Membership::relieve(std::uint32_t member) {
  CHECK(present_.contains(member), "a member of the View");
  weights_.relieve(member);
  shares_anew_ = true;
  change_anew();
}

void Membership::part(std::uint32_t member) {
  CHECK(present_.contains(member) && !changing_, "a member of the View, which does not change yet");
  parting_ = member;
  change_anew();
}

void Membership::entered(std::uint32_t member, ViewId view) {
  for (auto& [other, parted] : parted_) {
    if (parted.view <= view) parted.waiting.erase(member);
  }
  std::erase_if(parted_, [](const auto& each) { return each.second.waiting.empty(); });
}

bool Membership::lose(std::uint32_t member) {
  weights_.keep(member);
  if (present_.erase(member) + parted_.erase(member) > 0) {
    interrupts_ = true;
    parting_.reset();
  } else if (joining_.erase(member) == 0) {
    return false;
  }
  change_anew();
  changing_ = !present_.empty();
  return true;
}

Result<Membership::Answer> Membership::halted(std::uint32_t member, ViewId change,
                                              std::uint64_t next_step, std::uint64_t unbegun) {
  if (change != this->change() || !halting().contains(member)) return Answer{};
  if (present_.contains(member) && next_step < least_[member]) {
    return Error{ErrorKind::kLostPeers,
                 fmt::format("member.{} would make step {} next, although it has made those before "
                             "{}",
                             member, next_step, least_[member])};
  }
  const std::uint64_t most = std::max<std::uint64_t>(kMostBegun, 2 * options_.steps_per_iteration);
  // One that learns may be any number of steps behind a planned View that it has been told.
  if (unbegun > std::max(next_step + most, view_.first_step)) {
    return Error{ErrorKind::kLostPeers,
                 fmt::format("member.{} has begun what is before step {}, although it would make "
                             "step {} next",
                             member, unbegun, next_step)};
  }
  heard_[member] = {next_step, unbegun};
  return settle();
}

Membership::Answer Membership::end_at(std::uint64_t step) {
  options_.end_step = step;
  return changing_ ? settle() : Answer{};
}

Membership::Answer Membership::settle() {
  if (heard_.size() < halting().size()) return {};
  // When all steps of the run are made, members only hand over sums.
  if (is_short() && first_unbegun() != options_.end_step) return {};
  Answer answer;
  answer.left_behind = left_behind();
  if (!answer.left_behind.empty()) return answer;
  View next = next_view();
  answer.taken_over = taken_over(next);
  view_ = std::move(next);
  // In a change that is not planned all have forgotten what they waited for.
  if (interrupts_) parted_.clear();
  answer.parted = std::exchange(parting_, std::nullopt);
  if (answer.parted) {
    present_.erase(*answer.parted);
    weights_.keep(*answer.parted);
    parted_[*answer.parted] = {view_.id, present_};
  }
  std::erase_if(taught_until_, [&](const auto& each) { return !view_.is_new(each.first); });
  for (const std::uint32_t member : view_.newcomers) {
    // In a planned change those that learn make the steps of the View before themselves.
    if (interrupts_ || joining_.contains(member)) taught_until_[member] = view_.first_step;
  }
  present_.merge(joining_);
  joining_.clear();
  least_.clear();
  for (const auto& [member, heard] : heard_) least_[member] = heard.next_step;
  changing_ = interrupts_ = shares_anew_ = false;
  answer.view = view_;
  return answer;
}

std::uint32_t Membership::taken_over(const View& next) const {
  if (options_.end_step > 0 && next.first_step >= options_.end_step) return 0;
  const std::uint64_t iteration = next.first_step / options_.steps_per_iteration;
  const std::vector<std::uint32_t>& before = view_.owners_in(iteration);
  const std::vector<std::uint32_t>& after = next.owners_in(iteration);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < after.size(); ++i) count += after[i] != before[i] ? 1 : 0;
  return count;
}

// Newcomers do not count: they know only what the others taught them.
std::uint64_t Membership::furthest() const {
  std::uint64_t furthest = 0;
  for (const std::uint32_t member : present_) {
    furthest = std::max(furthest, heard_.at(member).next_step);
  }
  return furthest;
}

std::uint64_t Membership::first_unbegun() const {
  std::uint64_t step = 0;
  for (const std::uint32_t member : present_) step = std::max(step, heard_.at(member).unbegun);
  return step;
}

// A survivor that lacks one step gets its sums from the others, and a newcomer may lack any number
// of steps, as it learns them. A survivor that lacks more can get them from no one, and a newcomer
// cannot be ahead of its teachers. In a planned change all make what they lack themselves, and have
// told how far they are at different times.
std::vector<std::uint32_t> Membership::left_behind() const {
  std::vector<std::uint32_t> members;
  for (const auto& [member, heard] : heard_) {
    const std::uint64_t next = heard.next_step;
    const bool learns = joining_.contains(member) || still_learns(member);
    const bool lacks_too_much = !is_planned() && !learns && furthest() - next > 1;
    if (lacks_too_much || (learns && next > first_unbegun())) members.push_back(member);
  }
  return members;
}

bool Membership::still_learns(std::uint32_t member, std::uint64_t next_step) const {
  const auto taught = taught_until_.find(member);
  return present_.contains(member) && taught != taught_until_.end() && next_step < taught->second;
}

std::vector<std::uint32_t> Membership::replicas_by_site(
    const std::set<std::uint32_t>& members) const {
  std::vector<std::uint32_t> replicas;
  for (const std::uint32_t member : positions_.by_site(members)) {
    for (std::uint32_t i = 0; i < options_.replicas_per_member; ++i) {
      replicas.push_back(member * options_.replicas_per_member + i);
    }
  }
  return replicas;
}

std::vector<std::uint32_t> Membership::share_out(const std::set<std::uint32_t>& members) const {
  return assign_micro_batches(options_.micro_batches, weights_.among(members), options_.parts,
                              replicas_by_site(members));
}

// The View begins at the step that the furthest survivor would make next, or has not begun. Three
// rules keep work: members keep their places in the ring, the present iteration keeps its owners
// as far as they are here, and later assignments are kept unless micro-batches are shared out anew.
// Newcomers get micro-batches only in an iteration that no member has begun.
View Membership::next_view() const {
  View view;
  view.id = {options_.term, number_};
  view.first_step = first_unbegun();
  for (const std::uint32_t member : participants()) {
    if (joining_.contains(member) || still_learns(member)) view.newcomers.push_back(member);
  }
  const auto take = [&](std::uint32_t member) {
    view.ring.push_back(member);
    const bool follows = present_.contains(member) && is_planned() && !still_learns(member);
    view.reached.push_back(follows ? view.first_step : heard_.at(member).next_step);
  };
  for (const std::uint32_t member : positions_.ring_of(participants())) take(member);
  view.rows = positions_.rows_of(view.ring);

  const std::uint64_t iteration = view.first_step / options_.steps_per_iteration;
  // An owner keeps its micro-batches, even a member of weight 0 that took them over when no other
  // was left.
  std::set<std::uint32_t> staying = present_;
  if (parting_) staying.erase(*parting_);
  const auto reassigned = [&](const std::vector<std::uint32_t>& owners) {
    std::vector<std::uint64_t> weights = weights_.among(staying);
    for (const std::uint32_t replica : owners) {
      const bool is_here = staying.contains(replica / options_.replicas_per_member);
      if (is_here && weights[replica] == 0) weights[replica] = 1;
    }
    return reassign_micro_batches(owners, weights, options_.parts);
  };
  // If those that have made a step are lost, the others make it after all, in its iteration.
  std::uint64_t next_step = view.first_step;
  for (const std::uint32_t member : present_) {
    if (!still_learns(member)) next_step = std::min(next_step, heard_.at(member).next_step);
  }
  const std::uint64_t first = next_step / options_.steps_per_iteration;
  view.owners = reassigned(view_.owners_in(first));
  // A member computes at most one iteration ahead, so no member has begun this one.
  const std::uint64_t new_iteration = iteration + 2;
  const bool assigns = shares_anew_ || !joining_.empty();
  for (const View::Assignment& assignment : view_.later) {
    if (assignment.from <= first) continue;
    if (assigns && assignment.from >= new_iteration) continue;
    view.later.push_back({assignment.from, reassigned(assignment.owners)});
  }
  if (assigns) {
    view.later.push_back({new_iteration, share_out(participants())});
  }
  return view;
}

}  // namespace troupe::pipeline
