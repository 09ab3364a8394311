#pragma once

// Root of a node that computes: owns its loader, if it has data, and its replicas. Decides nothing
// by itself: it tells the Coordinator when something failed, when it loses another member, or when
// its node is to end, and ends when it is released, or expelled. While the head is away its node
// goes on; what it has told meanwhile, and before, it tells the next Coordinator again. Without one
// for good it ends, with the state that its replica has, which whoever runs the node may save.
//
// What it is sent are control messages only. Port out: "metrics" (metrics lane), to the Monitor,
// what it answers when that asks what the node does; without it nobody is answered. Called
// "member.K" in the plan.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "runtime/actor.h"
#include "runtime/base/trace.h"
#include "runtime/transport/gate.h"

namespace troupe::actors {

// What a member came to. Filled by the Member; to be read when the node has ended.
struct MemberOutcome {
  // Of one whose head is not heard of any more: its last committed one, if it has one. Else null.
  StatePointer orphan_state;
};

struct MemberOptions {
  std::string replica;  // that is asked for the state; "": none is
  std::string reducer;  // that is told of fellows; "": none is
  // What is told of the node when the Monitor asks: what it does, its traces() and its
  // wait_for_graph(). Called in the Member's handlers; short. Null: nothing is told.
  std::function<telemetry::NodeSample()> sample = nullptr;
  std::function<std::vector<runtime::ActorTrace>()> trace = nullptr;
  std::function<std::string()> waits = nullptr;
  std::shared_ptr<MemberOutcome> outcome = std::make_shared<MemberOutcome>();
};

class Member final : public runtime::Actor {
 public:
  explicit Member(MemberOptions options = {}) : options_(std::move(options)) {}

  void receive(runtime::Context& context, runtime::Message message) override;
  // Tells the Coordinator, which lets the others go on without it.
  void stop(runtime::Context& context) override;
  // The replica has not told its state in time.
  void timer(runtime::Context& context, runtime::TimerId id) override;
  // What cannot be told any more, the loss of the peer tells; and the replica may have ended.
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override;
  std::string waiting_for() const override { return "its release by the coordinator"; }

 private:
  void report(runtime::Context& context, const Probe& probe) const;
  void lose(runtime::Context& context, const runtime::PeerLost& lost);
  void tell_again(runtime::Context& context);
  void lose_head(runtime::Context& context, const runtime::PeerLost& lost);
  // The first failure of its own is why, if there was one.
  void fail(runtime::Context& context, const runtime::Error& error);

  MemberOptions options_;
  std::optional<MemberFailed> failure_;  // the first
  std::vector<FellowLost> lost_;
  std::optional<runtime::Error> orphaned_;  // why, while the replica is asked for its state
  bool leaves_ = false;
  bool head_is_away_ = false;
};

}  // namespace troupe::actors
