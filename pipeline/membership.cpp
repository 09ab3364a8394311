#include "pipeline/membership.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/micro_batch.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Membership::Membership(MembershipOptions options)
    : options_(std::move(options)), present_(options_.ring.begin(), options_.ring.end()) {
  CHECK(!present_.empty() && present_.size() == options_.ring.size(), "a ring of members");
  CHECK(options_.weights.size() == options_.ring.size() * options_.replicas_per_member,
        "a weight for each replica");
}

const View& Membership::begin(std::uint64_t first_step) {
  CHECK(number_ == 0, "begins once");
  view_.id = {options_.term, ++number_};
  view_.first_step = first_step;
  view_.ring = options_.ring;
  view_.reached.assign(view_.ring.size(), first_step);
  view_.owners = assign_micro_batches(options_.micro_batches, options_.weights);
  return view_;
}

std::optional<ViewId> Membership::change() const {
  if (!changing_) return std::nullopt;
  return ViewId{options_.term, number_};
}

std::vector<std::uint32_t> Membership::unheard() const {
  std::vector<std::uint32_t> members;
  if (!changing_) return members;
  for (const std::uint32_t member : present_) {
    if (!heard_.contains(member)) members.push_back(member);
  }
  return members;
}

bool Membership::lose(std::uint32_t member) {
  if (present_.erase(member) == 0) return false;
  changing_ = !present_.empty();
  heard_.clear();
  ++number_;
  return true;
}

Result<std::optional<View>> Membership::halted(std::uint32_t member, ViewId change,
                                               std::uint64_t next_step) {
  if (change != this->change() || !present_.contains(member)) return std::optional<View>{};
  const std::uint64_t least = view_.reached[view_.position_of(member)];
  if (next_step < least) {
    return Error{ErrorKind::kLostPeers, fmt::format("member.{} would make step {} next, although "
                                                    "it has made those before {}",
                                                    member, next_step, least)};
  }
  for (const auto& [other, next] : heard_) {
    if (std::max(next, next_step) - std::min(next, next_step) <= 1) continue;
    return Error{ErrorKind::kLostPeers,
                 fmt::format("member.{} would make step {} next and member.{} step {}; members "
                             "differ by one step at most",
                             member, next_step, other, next)};
  }
  heard_[member] = next_step;
  if (heard_.size() < present_.size()) return std::optional<View>{};
  view_ = next_view();
  changing_ = false;
  return std::optional<View>{view_};
}

View Membership::next_view() const {
  View view;
  view.id = {options_.term, number_};
  for (const std::uint32_t member : options_.ring) {
    if (!present_.contains(member)) continue;
    view.ring.push_back(member);
    view.reached.push_back(heard_.at(member));
  }
  view.first_step = *std::max_element(view.reached.begin(), view.reached.end());
  std::vector<std::uint64_t> weights = options_.weights;
  for (std::size_t replica = 0; replica < weights.size(); ++replica) {
    const auto member = static_cast<std::uint32_t>(replica / options_.replicas_per_member);
    if (!present_.contains(member)) weights[replica] = 0;
  }
  // Of members that were to compute nothing all are equal when nobody else is left.
  if (std::all_of(weights.begin(), weights.end(), [](std::uint64_t each) { return each == 0; })) {
    for (std::size_t replica = 0; replica < weights.size(); ++replica) {
      const auto member = static_cast<std::uint32_t>(replica / options_.replicas_per_member);
      if (present_.contains(member)) weights[replica] = 1;
    }
  }
  view.owners = reassign_micro_batches(view_.owners, weights);
  return view;
}

}  // namespace troupe::pipeline
