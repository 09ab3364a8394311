#pragma once

// The members of a run and how far each has come: who is here, who is lost, who learns from
// whom, who wants to leave, whose replicas have ended. How that changes is in
// pipeline/steps/roster_rules.h. No clocks, no messages. One thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/steps/balance.h"
#include "pipeline/steps/membership.h"
#include "pipeline/steps/quarrels.h"
#include "pipeline/steps/roster_actions.h"
#include "runtime/base/clock.h"

namespace troupe::pipeline {

struct RosterOptions {
  MembershipOptions membership;
  std::vector<std::string> names;  // of the members' nodes; "", of the only one: this node
  std::uint64_t first_step = 0;
  std::uint64_t iterations = 0;    // of the whole run; 0: it is not known
  std::uint64_t proven_steps = 2;  // that a newcomer has to make before it may join
  bool shares_anew = true;         // micro-batches, when it is worthwhile
  runtime::Duration parting_grace{0}, accused_grace{0};  // see Quarrels
};

struct Roster {
  // The phases of a run follow each other in this order; kReturning stands in for kGathering where
  // a coordinator takes the place of a lost one. Members may be lost in any of them.
  enum class Phase : std::uint8_t { kGathering, kReturning, kTraining, kStopping, kOver };
  struct Member {
    enum class State : std::uint8_t { kAway, kHere, kLost };
    State state = State::kAway;
    // From whom it learns, or gets what it still lacks in its first View.
    std::optional<std::uint32_t> teacher;
    bool learns = false;  // it is taught, and in no View
    // While it learns: how many steps each of its replicas has made, of those that have a state.
    std::map<std::uint32_t, std::uint64_t> steps;
    // It may not leave yet; and why it leaves, for people: "" when it wants it itself.
    std::optional<std::string> leaves_because;
  };
  // What a member has halted with; see actors::Halted.
  struct Report {
    ViewId change;
    std::uint64_t next_step = 0;
    std::uint64_t kept_bytes = 0;
    std::shared_ptr<const View> view;  // null: it is in none yet
  };

  explicit Roster(RosterOptions options);

  std::optional<std::uint32_t> member_at(std::string_view name) const;
  std::uint32_t member_of(std::uint32_t replica) const {
    return replica / options.membership.replicas_per_member;
  }
  const std::string& name(std::uint32_t member) const { return options.names[member]; }
  bool is_here(std::uint32_t member) const { return members[member].state == Member::State::kHere; }
  bool is_lost(std::uint32_t member) const { return members[member].state == Member::State::kLost; }
  // It makes steps, and nobody else does.
  bool is_last(std::uint32_t member) const;
  // All others that make steps still lack something that is on its way to them.
  bool alone_knows(std::uint32_t member) const;
  // All replicas of the member have shown that they apply a step as the others do; or have a state,
  // when no steps are made that they could show it by.
  bool may_join(std::uint32_t member) const;
  // Members of the first ring that have not come yet.
  std::vector<std::uint32_t> absent() const;
  std::vector<std::string> present_names() const;  // of those that make steps
  std::uint32_t leading_replica() const {
    return membership.view().leader() * options.membership.replicas_per_member;
  }

  runtime::TimePoint now{0};  // set before each event
  RosterActions actions;      // what is to be done, in this order; whoever does it takes them away
  RosterOptions options;
  Phase phase = Phase::kGathering;
  Membership membership;
  std::vector<Member> members;
  std::set<std::uint32_t> training;  // replicas that have not ended
  Quarrels quarrels;
  Balancer balancer;
  bool stop_asked = false;  // while it returns
  // These belong to the change of the View that is under way.
  runtime::TimePoint changing_since{0};
  std::vector<std::string> causes;
  std::string shared_anew;
  std::uint64_t most_kept = 0;
  bool told_short = false;  // the log says that it waits for members
};

}  // namespace troupe::pipeline
