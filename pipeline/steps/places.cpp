#include "pipeline/steps/places.h"

namespace troupe::pipeline {

// A member that was told to leave, or that the others go on without, is heard to the end before
// another process comes in its place.
void await_others(Roster& roster) {
  if (roster.phase != Roster::Phase::kTraining || !roster.membership.not_halted().empty()) return;
  for (std::uint32_t i = roster.options.reused_from; i < roster.members.size(); ++i) {
    Roster::Member& member = roster.members[i];
    if (member.state != Roster::Member::State::kLost || member.is_connected) continue;
    const std::uint32_t process = member.process + 1;
    member = Roster::Member();
    member.process = process;
    for (const std::uint32_t replica : roster.replicas_of(i)) {
      roster.balancer.forget(replica);
      roster.membership.weights().weigh_as_others(replica);
    }
    roster.actions.push_back(AwaitAnother{i, process});
  }
}

}  // namespace troupe::pipeline
