#include "pipeline/steps/roster.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {

Roster::Roster(RosterOptions of_run)
    : options(std::move(of_run)),
      membership(options.membership),
      members(options.names.size()),
      quarrels(options.parting_grace, options.accused_grace),
      balancer(options.membership.weights.size()) {
  const std::uint32_t replicas = options.membership.replicas_per_member;
  CHECK(members.size() * replicas == options.membership.weights.size(), "a place for each member");
  for (const std::uint32_t member : options.membership.ring) {
    for (std::uint32_t i = 0; i < replicas; ++i) training.insert(member * replicas + i);
  }
}

std::optional<std::uint32_t> Roster::member_at(std::string_view name) const {
  const auto found = std::find(options.names.begin(), options.names.end(), name);
  if (found == options.names.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - options.names.begin());
}

bool Roster::is_last(std::uint32_t member) const {
  return membership.present() == std::set<std::uint32_t>{member};
}

bool Roster::alone_knows(std::uint32_t member) const {
  const std::set<std::uint32_t>& present = membership.present();
  return std::all_of(present.begin(), present.end(), [&](std::uint32_t each) {
    return each == member || members[each].teacher.has_value();
  });
}

bool Roster::may_join(std::uint32_t member) const {
  const Member& pupil = members[member];
  if (!pupil.learns || membership.participants().contains(member)) return false;
  const auto has_shown = [&](const auto& each) {
    return membership.is_short() || each.second >= options.proven_steps;
  };
  return pupil.steps.size() == options.membership.replicas_per_member &&
         std::all_of(pupil.steps.begin(), pupil.steps.end(), has_shown);
}

std::vector<std::uint32_t> Roster::absent() const {
  std::set<std::uint32_t> away;
  for (const std::uint32_t member : options.membership.ring) {
    if (!name(member).empty() && members[member].state == Member::State::kAway) {
      away.insert(member);
    }
  }
  return {away.begin(), away.end()};
}

std::vector<std::string> Roster::present_names() const {
  std::vector<std::string> names;
  for (const std::uint32_t member : membership.present()) names.push_back(name(member));
  return names;
}

}  // namespace troupe::pipeline
