#pragma once

// The root actor of a node that computes. It owns the node's loader, if the node has data, its
// replicas and its reducer. It decides nothing: it tells the Coordinator when an actor of the node
// has failed, when the node has lost another member, and when the node is asked to end. It ends
// when the Coordinator releases or expels it.
//
// While the head is away the node goes on, and a new Coordinator is told again what the last one
// was told. When the head is given up for good the member asks its replica for its state and ends,
// so that its launcher can save that state.
//
// It receives control messages only. Out port: "metrics" (metrics lane) to the Monitor, with the
// answers to its probes; where the plan wires none, probes are not answered. Called "member.K" in
// the plan.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/node_reports.h"
#include "runtime/actor.h"
#include "runtime/base/trace.h"
#include "runtime/node/gate_options.h"

namespace troupe::actors {

// The result of a member. The Member fills it; read it when the node has ended.
struct MemberOutcome {
  // The last committed state of a member whose head was given up; null when there is none.
  StatePointer orphan_state;
};

struct MemberOptions : NodeHooks {
  std::string replica;  // the replica that is asked for its state; "": none is
  std::string reducer;  // the reducer that hears which neighbours were met; "": none does
  std::shared_ptr<MemberOutcome> outcome = std::make_shared<MemberOutcome>();
};

class Member final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  explicit Member(MemberOptions options = {}) : options_(std::move(options)) {}

  void start(Context& context) override;
  // Tells the Coordinator, which lets the others go on without this member.
  void stop(Context& context) override;
  // The replica has not told its state in time.
  void timer(Context& context, runtime::TimerId id) override;
  // A message that does not reach the Coordinator needs no answer, because the loss of the head is
  // told as well. A question to a replica that has ended does.
  void undeliverable(Context& context, Message message, const runtime::Error& cause) override;
  runtime::ChildDecision child_ended(Context& context, const runtime::ChildEnd& end) override;
  std::string waiting_for() const override { return "its release by the coordinator"; }

 private:
  void receive_release(Context& context, const Release& release);
  void receive_expelled(Context& context, const Expelled& expelled);
  void receive_peer_lost(Context& context, const runtime::PeerLost& lost);
  void receive_peer_left(Context& context, const runtime::PeerLeft& left);
  void receive_peer_away(Context& context, const runtime::PeerAway& away);
  void receive_peer_joined(Context& context, const runtime::PeerJoined& joined);
  void receive_own_state(Context& context, const OwnState& own);
  void receive_probe(Context& context, const Probe& probe);
  void lose_head(Context& context, const runtime::PeerLost& lost);
  void repeat_reports(Context& context);
  // Ends with the first failure of this node's own actors if there was one, else with this error.
  void fail(Context& context, const runtime::Error& error);

  MemberOptions options_;
  std::optional<MemberFailed> failure_;  // the first of this node
  std::vector<NeighbourLost> lost_;
  std::optional<runtime::Error> orphaned_;  // why the head was given up, while the replica is asked
  bool leaves_ = false;
  bool head_is_away_ = false;
};

}  // namespace troupe::actors
