#pragma once

// Begins and ends the run. It waits until every member is there, takes in those that come later,
// goes on without those that are lost, and hears of every end. Then it has the last state saved and
// validated, releases the members and ends its node. pipeline/steps/roster.h decides what
// follows when something happens to a member; this actor sends what that says. How a run ends is in
// actors/run_ending.h. In one process there is one member, on the same node.
//
// A run goes through these phases (Roster::Phase):
//
//   gathering   until all first members are here; or
//   returning   this coordinator takes the place of one that was lost with its head. All members
//               that come back halt and say which View they are in, and the run goes on from the
//               newest with a View of a higher term
//   training    until all replicas have ended
//   stopping    the same, after replicas were told to stop
//   over        the last state is saved and validated, metrics are written, members are released
//
// Only control messages. Called "coordinator" in the plan. Owns all other actors of its node.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.h"
#include "actors/roster_teller.h"
#include "actors/run_ending.h"
#include "config/topology.h"
#include "pipeline/steps/membership.h"
#include "pipeline/steps/roster.h"
#include "runtime/actor.h"
#include "runtime/node/gate_options.h"
#include "runtime/node/patience.h"
#include "runtime/transport/head_request.h"

namespace troupe::actors {

// The process of a member, or of one that was to become a member, has ended.
struct MissingMember {
  std::string node;
  runtime::Error error;
};

// A process that is told to end waits for its release, and not for more than 20 s.
inline constexpr runtime::Duration kHandoverGrace = std::chrono::seconds(10);

// `membership` has the members that the run begins with; all others of `member_slots` may join.
// Their nodes are the roster's first names.
struct CoordinatorOptions : pipeline::RosterOptions {
  CoordinatorOptions() {
    proven_steps = kProvenSteps;
    handover_grace = kHandoverGrace;
    parting_grace = config::FailureSection{}.dead_after;
    accused_grace = runtime::Patience(parting_grace).most();
  }
  StatePointer state;  // that training begins with, before `first_step`
  // For each member its node, whose root actor has the same name, and its reducer. "", of the only
  // member: it is on this node.
  struct MemberSlot {
    std::string node;
    std::string reducer = "reducer";
  };
  std::vector<MemberSlot> member_slots{{}};
  // The member that has this reducer; and the one whose node has this root.
  std::optional<std::uint32_t> member_of(std::string_view reducer) const;
  std::optional<std::uint32_t> member_rooted_in(std::string_view actor) const;
  // The number of an address at which other machines reach this one, "" without one: where members
  // are that come over loopback.
  std::string own_host;
  // Asked now and then until training is over which processes have ended since. May be null.
  std::function<std::vector<MissingMember>()> ended;
  bool validate = true;                           // there is a Validator
  std::optional<pipeline::StoppingOptions> stop;  // when training ends before `iterations`
  bool has_pools = false;                         // there is a Provisioner
  // The state that the coordinators before this one have left. None: the run begins here.
  struct Predecessor {
    std::set<std::uint32_t> taken;     // members that were ever let in, or were about to come
    std::set<std::uint32_t> expected;  // members of the newest View
    std::uint64_t untold_step = 0;     // the first that the Monitor has not written
    bool made_all = false;             // `state` is the run's last; members may have been released
    // Those that more than one process was asked to become, with how many were; and those of them
    // that are in the newest View with an earlier one.
    std::map<std::uint32_t, std::uint32_t> processes{};
    std::set<std::uint32_t> renewed{};
  };
  std::optional<Predecessor> predecessor;
  // How long these members may take to come back. The others go on without those that do not.
  runtime::Duration return_within = std::chrono::seconds(5);
  // The time of day as text, for people. May be null.
  std::function<std::string()> time_of_day;
  // Called with each View, the first one included, before any member is told of it. May be null.
  std::function<void(const RunOutcome::ViewChange&)> on_view;
};

class Coordinator final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  Coordinator(CoordinatorOptions options, std::shared_ptr<RunOutcome> outcome);

  void start(Context& context) override;
  void receive(Context& context, Message message) override;
  // Looks after members, now and then until training is over.
  void timer(Context& context, runtime::TimerId id) override;
  // A message for a member that is lost comes back, which surprises nobody.
  void undeliverable(Context& context, Message message, const runtime::Error& cause) override;
  void stop(Context& context) override;
  runtime::ChildDecision child_ended(Context& context, const runtime::ChildEnd& end) override;
  std::string waiting_for() const override;

 private:
  void receive_replica_end(Context& context, const ReplicaEnd& end);
  void receive_halted(Context& context, const Halted& halted, Message& message);
  void receive_entered(Context& context, const Entered& entered, Message& message);
  void receive_validation(Context& context, const ValidationResult& result);
  void receive_done(Context& context, const LastStateDone& done, Message& message);
  void receive_checkpoint_request(Context& context, const CheckpointRequest&);
  void receive_peer_joined(Context& context, const runtime::PeerJoined& peer);
  void receive_peer_lost(Context& context, const runtime::PeerLost& lost);
  void receive_peer_left(Context& context, const runtime::PeerLeft& left);
  void receive_neighbour_lost(Context& context, const NeighbourLost& lost, Message& message);
  void receive_leaving(Context& context, const Leaving&, Message& message);
  void receive_member_failed(Context& context, const MemberFailed& failed, Message& message);
  void receive_learned(Context& context, const Learned& learned, Message& message);
  void receive_too_slow(Context& context, const TooSlow& slow, Message& message);
  void receive_pace(Context& context, const Pace& pace, Message& message);
  void receive_request(Context& context, const runtime::RequestAsked& asked);
  void receive_let_go(Context& context, const LetGo& asked);

  // Goes on from what the members that have come back say, once all have or their time is over.
  void look_for_returned(Context& context);

  CoordinatorOptions options_;
  std::shared_ptr<RunOutcome> outcome_;
  pipeline::Roster roster_;
  RunEnding ending_;
  RosterTeller teller_;
  // While it returns: what the members that have come back say, until when others may come, and
  // what members want, which waits until it is known who they are.
  pipeline::Reports reports_;
  runtime::TimePoint return_by_{0};
  std::vector<Message> deferred_;
};

}  // namespace troupe::actors
