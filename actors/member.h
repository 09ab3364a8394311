#pragma once

// Root of a node that computes: owns its loader, if it has data, and its replicas. Decides nothing
// by itself: it tells the Coordinator when something failed, when it loses another member, or when
// its node is to end, and ends when it is released, or expelled. While the head is away its node
// goes on; what it has told meanwhile, and before, it tells the next Coordinator again. Without one
// for good it ends.
//
// Only control messages. Called "member.K" in the plan.

#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "runtime/actor.h"
#include "runtime/transport/gate.h"

namespace troupe::actors {

class Member final : public runtime::Actor {
 public:
  void receive(runtime::Context& context, runtime::Message message) override;
  // Tells the Coordinator, which lets the others go on without it.
  void stop(runtime::Context& context) override;
  // What cannot be told any more, the loss of the peer tells.
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override;
  std::string waiting_for() const override { return "its release by the coordinator"; }

 private:
  void lose(runtime::Context& context, const runtime::PeerLost& lost);
  void tell_again(runtime::Context& context);

  std::optional<MemberFailed> failure_;  // the first
  std::vector<FellowLost> lost_;
  bool leaves_ = false;
  bool head_is_away_ = false;
};

}  // namespace troupe::actors
