#pragma once

// The members of a run: who is here, who is lost, who learns from whom, who wants to leave, whose
// replicas have ended. The functions below say what follows when something happens to a member, as
// a list of actions, which the Coordinator carries out in their order. Which View comes next is
// decided in pipeline/steps/membership.h.
//
// The rules in short:
// - A member that is lost costs no step: the others halt and go on in a new View. The loss of the
//   last one that makes steps ends the run, with the last committed state saved.
// - A member that is told to leave first hands over its micro-batches, so that nothing is computed
//   twice. Then it finishes what it has begun with the others, whose next View is without it, and
//   is released when all of them have entered that. Those that learn from it are taught to the end
//   before. If all this takes longer than handover_grace, it leaves as if it were lost.
// - A member that comes while the run trains learns first, from one that is likely to be near: the
//   one whose address begins most like its own, or else the leader. When it has shown that it
//   applies steps as the others do, it is admitted with the next View. Until then its loss costs
//   nobody anything.
// - When a teacher is lost before its pupil has everything, the pupil is expelled and may join
//   again. A member that alone has what others still lack may not leave before one of them has it.
// - Where another process may come in the place of a lost one, it is awaited when nobody has any
//   word to say to the lost one any more: all that are left have halted since, or are in a View
//   without it. It has a name of its own, and what names the lost one names nobody.
// - With fewer than min_members the members halt and wait for others to join.
//
// Pure: no clocks, no messages. One thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pipeline/steps/balance.h"
#include "pipeline/steps/membership.h"
#include "pipeline/steps/quarrels.h"
#include "pipeline/steps/view.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The actions, in the words of the messages that actors/roster_teller.cpp sends. Values.
struct SendHalt {
  std::uint32_t member = 0;
  ViewId change;
  bool planned = false;  // see actors::Halt
};
struct SendTeach {  // to the teacher; begins or ends
  std::uint32_t teacher = 0, member = 0;
  bool begins = true;
};
struct SendBegin {  // the state that training begins with
  std::uint32_t replica = 0;
};
struct SendExpelled {
  std::uint32_t member = 0;
  runtime::Error error;
};
struct SendRelease {
  std::uint32_t member = 0;
  std::string why;
};
// The member's process is over, and another one may come in its place.
struct AwaitAnother {
  std::uint32_t member = 0;
  std::uint32_t process = 1;
};
// A member is lost ("dead") or has left ("ended").
struct TellLoss {
  std::uint32_t member = 0;
  std::string state;
  runtime::Error error;
};
struct TellView {
  View view;
  bool begins = false;  // it is the first, and there is nothing more to tell
  std::vector<std::uint32_t> joined;
  std::vector<std::string> causes;
  std::string shared_anew;
  double halted_seconds = 0.0;
  std::uint32_t taken_over = 0;
  std::uint64_t kept_bytes = 0;
  std::optional<std::uint32_t> parted;  // is told too that it is without it
};
// Somebody has asked from outside that this member leaves, and it has become the last one.
struct RefuseLeave {
  std::uint32_t member = 0;
};
// Notes the error, if it is the run's first. Replicas are told to stop when training does.
struct StopTrainingOf {
  std::optional<runtime::Error> error;
  bool stops = false;
  std::vector<std::uint32_t> replicas;
};
struct SaveState {};  // no replica trains any more
struct EndRun {};     // there is nothing to save
struct LogLine {
  bool warns = false;
  std::string text;
};
using RosterAction =
    std::variant<SendHalt, SendTeach, SendBegin, SendExpelled, SendRelease, AwaitAnother, TellLoss,
                 TellView, RefuseLeave, StopTrainingOf, SaveState, EndRun, LogLine>;
using RosterActions = std::vector<RosterAction>;

struct RosterOptions {
  MembershipOptions membership;
  // The names of the members' present processes; "", of the only one: this node.
  std::vector<std::string> names;
  // Members from this number on may be other processes, one after the other.
  std::uint32_t reused_from = UINT32_MAX;
  std::uint64_t first_step = 0;
  std::uint64_t iterations = 0;  // of the whole run; 0: it is not known
  // Headers that a newcomer has to agree with before it may join: the second proves a step applied.
  std::uint64_t proven_steps = 2;
  bool shares_anew = true;  // micro-batches, when it is worthwhile
  // How long two members that have lost each other may go on before one of them has to go: when
  // both say so, and when only one does and the other may be dead (pipeline/steps/quarrels.h).
  runtime::Duration parting_grace{0}, accused_grace{0};
  // How long a member that leaves may take to hand over its micro-batches and to finish what it has
  // begun; 0: it leaves at once.
  runtime::Duration handover_grace{0};
};

struct Roster {
  // The phases of a run follow each other in this order; kReturning stands in for kGathering where
  // a coordinator takes the place of a lost one. Members may be lost in any of them.
  enum class Phase : std::uint8_t { kGathering, kReturning, kTraining, kStopping, kOver };
  struct Member {
    enum class State : std::uint8_t { kAwaited, kHere, kLost };
    State state = State::kAwaited;
    std::uint32_t process = 1;  // which of those that are this member one after the other
    bool is_connected = false;  // the head's node has not parted with it
    std::string host;           // the number of the address that it comes from; "": it has none
    // From whom it learns, or gets what it still lacks in its first View.
    std::optional<std::uint32_t> teacher;
    bool awaits_view = false;  // it is taught, and in no View
    // While it learns: how many headers agreed with each of its replicas that have a state.
    std::map<std::uint32_t, std::uint64_t> steps;
    // It may not leave yet; and why it leaves, for people: "" when it wants it itself.
    std::optional<std::string> leaves_because;
    // It hands over its micro-batches first: since when, and its replicas that have none any more.
    std::optional<runtime::TimePoint> hands_over_since;
    std::set<std::uint32_t> idle;
    bool parts = false;  // it has handed over, and the next View is without it, or this one already
  };
  // The words with which a member has halted; see actors::Halted.
  struct Report {
    ViewId change;
    std::uint64_t next_step = 0, unbegun = 0;
    std::uint64_t kept_bytes = 0;
    std::shared_ptr<const View> view;  // null: it is in none yet
  };

  explicit Roster(RosterOptions options);

  std::optional<std::uint32_t> member_at(std::string_view name) const;
  std::uint32_t member_of(std::uint32_t replica) const {
    return replica / options.membership.replicas_per_member;
  }
  // The name of its present process.
  const std::string& name(std::uint32_t member) const { return options.names[member]; }
  bool is_here(std::uint32_t member) const { return members[member].state == Member::State::kHere; }
  bool is_lost(std::uint32_t member) const { return members[member].state == Member::State::kLost; }
  // It makes steps, and nobody else does.
  bool is_last(std::uint32_t member) const {
    return membership.present() == std::set<std::uint32_t>{member};
  }
  // Another process may come in the place of one that is lost.
  bool is_reused(std::uint32_t member) const { return member >= options.reused_from; }
  // All others that make steps still lack something that is on its way to them.
  bool alone_knows(std::uint32_t member) const;
  // No member still lacks what was sent to it before its first View.
  bool all_follow() const;
  // The member waits until others compute its micro-batches, which they will soon.
  bool hands_over(std::uint32_t member) const;
  // It may take its time to hand over and to finish what it has begun.
  bool may_take_time(std::uint32_t member) const;
  // All replicas of the member have shown that they apply a step as the others do; or have a state,
  // when no steps are made that they could show it by.
  bool may_join(std::uint32_t member) const;
  std::set<std::uint32_t> replicas_of(std::uint32_t member) const;
  // Members of the first ring that have not come yet.
  std::vector<std::uint32_t> absent() const;
  std::uint32_t leading_replica() const {
    return membership.view().leader() * options.membership.replicas_per_member;
  }

  runtime::TimePoint now{0};  // set before each event
  RosterActions actions;      // what is to be done, in this order; whoever does it takes them away
  RosterOptions options;
  std::vector<std::string> nodes;  // the members' names as they were first
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

// All that are to be in the next View are to halt for the change that is under way.
void halt(Roster& roster);
// The first View begins.
void begin(Roster& roster);
// A member is here that was not lost; `host`: see Roster::Member.
void arrive(Roster& roster, std::uint32_t member, const std::string& host = "");
// A member is gone, with its process ("dead") or because it left ("ended").
void lose(Roster& roster, std::uint32_t member, const runtime::Error& error,
          std::string_view state);
// So many headers of the steps that a newcomer's replica was taught agreed with its state.
// `complete`: it has taken up its first View.
void note_learned(Roster& roster, std::uint32_t replica, std::uint64_t steps, bool complete);
// `teacher` says that the process of the member learns too slowly.
void note_too_slow(Roster& roster, std::uint32_t member, std::uint32_t process,
                   std::optional<std::uint32_t> teacher);
// A replica took so many seconds for so many micro-batches; `iteration` comes next.
void note_pace(Roster& roster, std::uint32_t replica, std::uint64_t iteration, double micro_batches,
               double seconds);
void note_halted(Roster& roster, std::uint32_t member, const Roster::Report& report);
// The member has entered the View, and needs nothing of those that are not in it any more.
void note_entered(Roster& roster, std::uint32_t member, ViewId view);
// An actor on the member's node has failed, and with it this replica if it is one.
void note_failure(Roster& roster, std::optional<std::uint32_t> member,
                  std::optional<std::uint32_t> replica, const runtime::Error& error);
void note_replica_end(Roster& roster, std::uint32_t replica);
// Training ends early: this is the first step that nobody makes.
void note_last_step(Roster& roster, std::uint64_t step);
// The member wants to leave, or somebody outside wants it to: `why`.
void let_leave(Roster& roster, std::uint32_t member, const std::string& why);
// The others are told this of a member that leaves.
runtime::Error why_left(const Roster& roster, std::uint32_t member);
// The replica has no micro-batches in the iteration under way, nor will it have any in its View.
void note_idle(Roster& roster, std::uint32_t replica);
// Those that have parted, and that nobody waits for, are released.
void release_parted(Roster& roster);
// Those that could not leave yet try again.
void let_waiting_leave(Roster& roster);
// Time has passed.
void look_after(Roster& roster);
// Training is to end; with an error, the run fails.
void stop(Roster& roster, std::optional<runtime::Error> error);

// A coordinator that has taken the place of a lost one goes on from these. `reports` are of the
// members that have come back, `taken` are those that were ever let in.
using Reports = std::map<std::uint32_t, Roster::Report>;
// The newest View that anybody is in. Null: nobody is in one.
const View* newest_view(const Reports& reports);
// Goes on from that View. Members of it that have not come back are lost, and so is every newcomer
// of which nobody knows any more who was sending it what. The others are asked again, unless all
// have told enough already.
void go_on_from(Roster& roster, const View& view, const Reports& reports,
                const std::set<std::uint32_t>& taken);
// Those that came meanwhile and are no members learn.
void teach_newcomers(Roster& roster);

}  // namespace troupe::pipeline
