// How members leave a run; see pipeline/steps/roster.h.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/roster.h"

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using Phase = Roster::Phase;

// The others compute nothing twice for a member that leaves when it has no micro-batches any more:
// they get these from an iteration on that nobody has begun. True: the member has to wait for that.
bool hand_over(Roster& roster, std::uint32_t member) {
  Roster::Member& one = roster.members[member];
  if (one.hands_over_since) return roster.hands_over(member);
  one.hands_over_since = roster.now;
  one.idle.clear();
  if (!roster.hands_over(member)) {
    one.hands_over_since.reset();
    return false;
  }
  const std::string text = roster.name(member) + " hands over its micro-batches, and leaves";
  roster.actions.push_back(LogLine{false, text});
  if (!roster.membership.change()) roster.changing_since = roster.now;
  roster.shared_anew = text;
  roster.membership.relieve(member);
  halt(roster);
  return true;
}

bool teaches(const Roster& roster, std::uint32_t member) {
  return std::ranges::any_of(roster.members, [&](const Roster::Member& each) {
    return each.state == Roster::Member::State::kHere && each.teacher == member;
  });
}

// It has handed over all, and the others need it only for what they have begun with it. True: it
// has to wait until they have finished that.
bool part(Roster& roster, std::uint32_t member) {
  Roster::Member& one = roster.members[member];
  Membership& membership = roster.membership;
  const bool is_enough =
      membership.participants().size() > roster.options.membership.min_members || one.parts;
  const bool may_wait = one.hands_over_since && is_enough && roster.may_take_time(member);
  if (!may_wait) return false;
  // Lessons are on their way, and a change that is under way ends.
  const bool must_wait = membership.change() || !roster.all_follow() || teaches(roster, member);
  if (one.parts || must_wait) return true;
  roster.changing_since = roster.now;
  one.parts = true;
  membership.part(member);
  halt(roster);
  return true;
}

// Iterations, and outer steps, may take longer than a member that leaves may wait.
void note_unfinished(Roster& roster, std::uint32_t member) {
  const Roster::Member& one = roster.members[member];
  const bool has_finished = one.idle.size() >= roster.options.membership.replicas_per_member;
  const bool makes_steps = roster.phase == Phase::kTraining && !roster.membership.is_short();
  if (!makes_steps || !one.hands_over_since || has_finished || roster.may_take_time(member)) return;
  roster.actions.push_back(LogLine{
      true, fmt::format("{} has not finished what it computes within {:.0f} s, and leaves: others "
                        "compute that from its beginning",
                        roster.name(member), runtime::seconds(roster.options.handover_grace))});
}

void release(Roster& roster, std::uint32_t member, const std::string& why) {
  roster.actions.push_back(SendRelease{member, why});
  lose(roster, member, why_left(roster, member), "ended");
}

}  // namespace

Error why_left(const Roster& roster, std::uint32_t member) {
  return {ErrorKind::kLostPeers, roster.name(member) + " has left the run: it was told to end"};
}

bool Roster::alone_knows(std::uint32_t member) const {
  const std::set<std::uint32_t>& present = membership.present();
  return std::all_of(present.begin(), present.end(), [&](std::uint32_t each) {
    return each == member || members[each].teacher.has_value();
  });
}

bool Roster::all_follow() const {
  const std::set<std::uint32_t>& present = membership.present();
  return std::none_of(present.begin(), present.end(),
                      [&](std::uint32_t member) { return members[member].teacher.has_value(); });
}

bool Roster::may_take_time(std::uint32_t member) const {
  const Member& one = members[member];
  return phase == Phase::kTraining && one.hands_over_since &&
         now - *one.hands_over_since < options.handover_grace;
}

bool Roster::hands_over(std::uint32_t member) const {
  const Member& one = members[member];
  const std::set<std::uint32_t>& present = membership.present();
  if (!may_take_time(member) || !present.contains(member)) return false;
  const bool others_stay = std::any_of(present.begin(), present.end(), [&](std::uint32_t each) {
    return each != member && !members[each].leaves_because;
  });
  // While no steps are made nothing can be handed over.
  return others_stay && !membership.is_short() &&
         one.idle.size() < options.membership.replicas_per_member;
}

void note_idle(Roster& roster, std::uint32_t replica) {
  const std::uint32_t member = roster.member_of(replica);
  if (member >= roster.members.size() || !roster.members[member].hands_over_since) return;
  roster.members[member].idle.insert(replica);
  let_waiting_leave(roster);
}

void note_entered(Roster& roster, std::uint32_t member, ViewId view) {
  roster.membership.entered(member, view);
  release_parted(roster);
}

void release_parted(Roster& roster) {
  for (std::uint32_t member = 0; member < roster.members.size(); ++member) {
    const Roster::Member& one = roster.members[member];
    const bool is_needed =
        roster.membership.present().contains(member) || roster.membership.is_awaited(member);
    if (!one.parts || roster.is_lost(member) || is_needed) continue;
    release(roster, member, one.leaves_because.value_or(""));
  }
}

void let_waiting_leave(Roster& roster) {
  for (std::uint32_t member = 0; member < roster.members.size(); ++member) {
    auto& waits = roster.members[member].leaves_because;
    const bool last = roster.is_last(member);
    const bool stays = !last && !roster.is_lost(member) &&
                       (roster.alone_knows(member) || roster.hands_over(member) ||
                        (roster.members[member].parts && roster.may_take_time(member)));
    if (!waits || stays) continue;
    const std::string why = *std::exchange(waits, std::nullopt);
    // It may have become the last one because those that it taught, or gave its work, are lost.
    if (last && !why.empty()) {
      roster.members[member].hands_over_since.reset();
      roster.membership.weights().keep(member);
      roster.actions.push_back(RefuseLeave{member});
    } else {
      let_leave(roster, member, why);
    }
  }
}

void let_leave(Roster& roster, std::uint32_t member, const std::string& why) {
  // In a run that ends all are released in the end.
  const bool ends = roster.phase == Phase::kStopping || roster.phase == Phase::kOver;
  if (ends || roster.is_lost(member)) return;
  if (roster.phase == Phase::kGathering || roster.is_last(member)) {
    return stop(roster, why_left(roster, member));
  }
  const bool alone_knows =
      roster.membership.present().contains(member) && roster.alone_knows(member);
  if (alone_knows) {
    roster.actions.push_back(LogLine{
        false, fmt::format("{} stays until one of the others has the steps that it teaches them",
                           roster.name(member))});
  }
  if (alone_knows || hand_over(roster, member) || part(roster, member)) {
    auto& waits = roster.members[member].leaves_because;
    // The wish of the member itself counts more than that of others.
    if (!waits || why.empty()) waits = why;
    return;
  }
  note_unfinished(roster, member);
  release(roster, member, why);
}

}  // namespace troupe::pipeline
