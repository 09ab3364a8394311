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

}  // namespace

bool Roster::hands_over(std::uint32_t member) const {
  const Member& one = members[member];
  const std::set<std::uint32_t>& present = membership.present();
  if (phase != Phase::kTraining || !one.hands_over_since || !present.contains(member)) return false;
  const bool others_stay = std::any_of(present.begin(), present.end(), [&](std::uint32_t each) {
    return each != member && !members[each].leaves_because;
  });
  // While no steps are made nothing can be handed over.
  return others_stay && !membership.is_short() &&
         one.idle.size() < options.membership.replicas_per_member &&
         now - *one.hands_over_since < options.handover_grace;
}

void note_idle(Roster& roster, std::uint32_t replica) {
  const std::uint32_t member = roster.member_of(replica);
  if (member >= roster.members.size() || !roster.members[member].hands_over_since) return;
  roster.members[member].idle.insert(replica);
  let_waiting_leave(roster);
}

void let_waiting_leave(Roster& roster) {
  for (std::uint32_t member = 0; member < roster.members.size(); ++member) {
    auto& waits = roster.members[member].leaves_because;
    const bool last = roster.is_last(member);
    const bool stays = !last && !roster.is_lost(member) &&
                       (roster.alone_knows(member) || roster.hands_over(member));
    if (!waits || stays) continue;
    const std::string why = *std::exchange(waits, std::nullopt);
    // It may have become the last one because those that it taught, or gave its work, are lost.
    if (last && !why.empty()) {
      roster.members[member].hands_over_since.reset();
      roster.membership.keep(member);
      roster.actions.push_back(RefuseLeave{member});
    } else {
      let_leave(roster, member, why);
    }
  }
}

void let_leave(Roster& roster, std::uint32_t member, const std::string& why) {
  const std::string& node = roster.name(member);
  const Error error{ErrorKind::kLostPeers,
                    fmt::format("{} has left the run: it was told to end", node)};
  // In a run that ends all are released in the end.
  const bool ends = roster.phase == Phase::kStopping || roster.phase == Phase::kOver;
  if (ends || roster.is_lost(member)) return;
  if (roster.phase == Phase::kGathering || roster.is_last(member)) return stop(roster, error);
  const bool alone_knows =
      roster.membership.present().contains(member) && roster.alone_knows(member);
  if (alone_knows) {
    roster.actions.push_back(LogLine{
        false,
        fmt::format("{} stays until one of the others has the steps that it teaches them", node)});
  }
  if (alone_knows || hand_over(roster, member)) {
    auto& waits = roster.members[member].leaves_because;
    // The wish of the member itself counts more than that of others.
    if (!waits || why.empty()) waits = why;
    return;
  }
  roster.actions.push_back(SendRelease{member, why});
  lose(roster, member, error, "ended");
}

}  // namespace troupe::pipeline
