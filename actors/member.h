#pragma once

// Root of a node that computes: owns its loader and replicas. Fails nothing by itself: it tells the
// Coordinator, which ends the run for everyone, and then releases it. So it does when it loses
// another member that its node shares links with; one that leaves has nothing more to say. Without
// the Coordinator it cannot go on.
//
// Only control messages. Called "member.K" in the plan.

#include <optional>
#include <string>

#include "actors/messages.h"
#include "runtime/actor.h"
#include "runtime/transport/gate.h"

namespace troupe::actors {

class Member final : public runtime::Actor {
 public:
  void receive(runtime::Context& context, runtime::Message message) override;
  // Asks the Coordinator to end the run, so that the replicas here report what they have.
  void stop(runtime::Context& context) override;
  // What cannot be told any more, the loss of the peer tells.
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override;
  std::string waiting_for() const override { return "its release by the coordinator"; }

 private:
  void lose(runtime::Context& context, const runtime::PeerLost& lost);

  std::optional<runtime::Error> error_;
};

}  // namespace troupe::actors
