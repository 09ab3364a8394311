#pragma once

// Begins and ends the run: waits until every member is there, hears of every end, has the last
// state saved and validated, releases the members and ends its node. While it trains, members that
// are lost, leave, or have lost each other cost no step: the others go on in a new View
// (pipeline/steps/membership.h), and where too few are left they wait for others to join. The last
// of them ends the run, and so does one that fails, with the last committed state saved. In one
// process there is one member, on the same node. When replicas turn out to be faster or slower than
// they have work, it is shared out anew (pipeline/steps/balance.h), which is a View as well.
//
// One that takes the place of another, which was lost with its head, has all members that come back
// halt, hears from them which View they are in, and goes on with the next one of a higher term.
//
// Only control messages. Called "coordinator" in the plan; owns all other actors of its node.

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
#include "pipeline/steps/balance.h"
#include "pipeline/steps/membership.h"
#include "runtime/actor.h"
#include "runtime/transport/drain.h"
#include "runtime/transport/gate.h"
#include "telemetry/record.h"

namespace troupe::actors {

// What a run came to. Filled by the Coordinator; to be read when the node has ended.
struct RunOutcome {
  StatePointer state;    // last committed; null when no replica could report
  bool stopped = false;  // by request, before its end
  double seconds = 0.0;  // see ReplicaEnd
  std::uint64_t timed_events = 0;
  bool saved = false;  // the state is in a checkpoint
  // A View after the first, and what people are told of it.
  struct ViewChange : telemetry::ViewFacts {
    pipeline::View view;
  };
  std::vector<ViewChange> changes;
  // The newest validation, as text for people and as JSON.
  struct Validation {
    std::string table;
    std::string json;
  };
  std::optional<Validation> validation;
};

// A process that is, or should have become, a member, and has ended.
struct MissingMember {
  std::string node;
  runtime::Error error;
};

struct CoordinatorOptions {
  // What training begins with, and the step that it is at.
  StatePointer state;
  std::uint64_t first_step = 0;
  std::uint64_t iterations = 0;  // of the whole run; 0: it is not known
  // Of which members there are; all others of `places` may join.
  pipeline::MembershipOptions membership;
  // Of each member its node, whose root actor has the same name, and its reducer. "", of the only
  // one: it is on this node.
  struct MemberPlace {
    std::string node;
    std::string reducer = "reducer";
  };
  std::vector<MemberPlace> places{{}};
  // Asked now and then until training is over: processes that have ended since. May be null.
  std::function<std::vector<MissingMember>()> ended;
  // Two members have lost each other: how long one of them may take to be lost here too, before
  // the others go on without one of them. Only one of them says so: this node may have more
  // patience with the other, which may be dead.
  runtime::Duration parting_grace = std::chrono::seconds(2);
  runtime::Duration accused_grace = std::chrono::seconds(20);
  bool validate = true;     // there is a Validator
  bool shares_anew = true;  // micro-batches, when it is worthwhile
  // What the coordinators before this one have left. None: the run begins.
  struct Predecessor {
    std::set<std::uint32_t> taken;     // members that were ever let in, or about to come
    std::set<std::uint32_t> expected;  // that were in the newest View
    std::uint64_t untold_step = 0;     // the first that the Monitor has not written
    bool made_all = false;  // `state` is the run's last, and members may have been released
  };
  std::optional<Predecessor> predecessor;
  // How long such members may take to come back; the others go on without those that do not.
  runtime::Duration return_within = std::chrono::seconds(5);
  // The time of day as text, for people. May be null.
  std::function<std::string()> time_of_day;
  // Told of each View, the first one included, before any member is. May be null.
  std::function<void(const RunOutcome::ViewChange&)> on_view;
};

class Coordinator final : public runtime::Actor {
 public:
  Coordinator(CoordinatorOptions options, std::shared_ptr<RunOutcome> outcome);

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;
  // What was said to a member that is lost.
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  void stop(runtime::Context& context) override;
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override;
  std::string waiting_for() const override;

 private:
  enum class Phase : std::uint8_t { kGathering, kReturning, kTraining, kSaving, kFlushing };
  // One member says that it has lost another.
  struct Quarrel {
    std::uint32_t from = 0, about = 0;
    runtime::Error error;
    runtime::TimePoint since;
  };
  std::optional<std::uint32_t> member_at(std::string_view node) const;
  std::optional<std::uint32_t> member_of_reducer(std::string_view reducer) const;
  std::uint32_t member_of(std::uint32_t replica) const {
    return replica / options_.membership.replicas_per_member;
  }
  bool is_away(std::uint32_t member) const { return !options_.places[member].node.empty(); }

  void take_joined(runtime::Context& context, const runtime::PeerJoined& peer);
  // coordinator_return.cpp
  void return_to(runtime::Context& context);
  void ask_returned(runtime::Context& context, std::uint32_t member);
  void take_report(runtime::Context& context, const Halted& report, std::uint32_t member);
  void look_for_returned(runtime::Context& context);
  void take_deferred(runtime::Context& context);
  void begin_late(runtime::Context& context, const pipeline::View& view);
  void part_from_others(runtime::Context& context, const pipeline::View& view);
  void go_on_from(runtime::Context& context, const pipeline::View& view);
  // coordinator_view.cpp
  void take_answer(runtime::Context& context, const pipeline::Membership::Answer& answer);
  void begin(runtime::Context& context);
  void teach(runtime::Context& context, std::uint32_t member);
  void take_learned(runtime::Context& context, const Learned& learned);
  void take_too_slow(runtime::Context& context, std::uint32_t member, std::string_view teacher);
  bool may_join(std::uint32_t member) const;
  void admit_learners(runtime::Context& context);
  void wait_for_members(runtime::Context& context);
  void take_pace(runtime::Context& context, const Pace& pace);
  void lose_learner(runtime::Context& context, std::uint32_t member);
  void halt(runtime::Context& context);
  void expel(runtime::Context& context, std::uint32_t member, const runtime::Error& error);
  void tell_view(runtime::Context& context, RunOutcome::ViewChange& change);
  void look_after_members(runtime::Context& context);
  void settle_quarrels(runtime::Context& context);
  void take_quarrel(runtime::Context& context, const FellowLost& lost, std::string_view from);
  // `state`: what the Monitor is told that it is now.
  void lose_member(runtime::Context& context, std::uint32_t member, const runtime::Error& error,
                   const char* state = "dead");
  void go_on_without(runtime::Context& context, std::uint32_t member, const runtime::Error& error);
  void take_halted(runtime::Context& context, const Halted& halted, std::string_view reducer);
  void take_end(runtime::Context& context, const ReplicaEnd& end);
  void take_validation(runtime::Context& context, const ValidationResult& result);
  void stop_training(runtime::Context& context, std::optional<runtime::Error> error);
  void ask_for_checkpoint(runtime::Context& context);
  void replica_ended(runtime::Context& context, std::uint32_t replica);
  void save(runtime::Context& context);
  void flush(runtime::Context& context);
  void release(runtime::Context& context, std::uint32_t member, const std::string& why = {});
  void release_members(runtime::Context& context);
  void end_run(runtime::Context& context);
  void take_done(runtime::Context& context, std::string_view actor,
                 const std::optional<runtime::Error>& error);
  // coordinator_drain.cpp: who wants to leave, or is asked to from outside, and whoever asks, which
  // is answered when that one has left. `why` is told to it; "" when it knows. One that alone has
  // what all others are still to be taught stays until one of these has it.
  void let_leave(runtime::Context& context, std::uint32_t member, const std::string& why);
  void let_waiting_leave(runtime::Context& context);
  bool is_last(std::uint32_t member) const;
  bool alone_knows(std::uint32_t member) const;
  void take_drains(runtime::Context& context, const runtime::Message& message);
  void drain(runtime::Context& context, const runtime::DrainAsked& asked);
  std::optional<runtime::Error> objection_to_drain(const std::string& node) const;
  runtime::Error objection_to_last(std::uint32_t member) const;
  void answer_drains(std::uint32_t member, const runtime::Result<void>& answer);
  LastState last_state() const;
  bool awaits(std::string_view actor) const;
  std::uint32_t leading_replica() const {
    return membership_.view().leader() * options_.membership.replicas_per_member;
  }

  CoordinatorOptions options_;
  std::shared_ptr<RunOutcome> outcome_;
  pipeline::Membership membership_;
  Phase phase_ = Phase::kGathering;
  bool stopping_ = false;
  bool stop_asked_ = false;  // while it returns
  // While it returns: of each member what it has reached, and in which View.
  std::map<std::uint32_t, Halted> reports_;
  runtime::TimePoint return_by_{0};
  std::vector<runtime::Message> deferred_;
  std::optional<std::uint64_t> untold_from_;  // see Predecessor; until the leader is asked
  std::set<std::uint32_t> absent_;            // members that have not come yet
  std::set<std::uint32_t> here_;              // that came
  std::set<std::uint32_t> lost_;              // and those that are gone
  struct Learner {
    std::uint32_t teacher = 0;
    // Of replicas that have a state: in how many steps they have made of it what the others have.
    std::map<std::uint32_t, std::uint64_t> steps;
  };
  std::map<std::uint32_t, Learner> learners_;  // that are in no View yet
  // Of those that have joined, and have not shown that they have all they were taught.
  std::map<std::uint32_t, std::uint32_t> teachers_;
  std::map<std::uint32_t, std::string> leaving_;  // that stay for now, and why they leave
  std::multimap<std::uint32_t, std::shared_ptr<runtime::DrainReply>> drains_;  // by member
  pipeline::Balancer balancer_;
  std::string shares_anew_;  // with the View that is under way, and why
  bool told_short_ = false;  // that it waits for members
  std::vector<Quarrel> quarrels_;
  std::vector<std::string> causes_;  // of the change of the View that is under way
  runtime::TimePoint changing_since_{0};
  std::uint64_t most_kept_ = 0;       // of members that have halted for it
  std::set<std::uint32_t> training_;  // replicas that have not ended
  std::vector<std::string> awaited_;  // actors that have still to answer with LastStateDone
  std::map<std::uint32_t, std::uint64_t> validations_;  // by replica; see ReplicaEnd
  std::optional<runtime::Error> error_;
  FinishMetrics finish_;  // as far as replicas have ended
};

}  // namespace troupe::actors
