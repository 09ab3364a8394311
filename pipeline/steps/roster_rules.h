#pragma once

// What follows when something happens to a member of a run, as a list of actions. The Coordinator
// carries these out in their order. Which View comes next is decided in
// pipeline/steps/membership.h.
//
// The rules in short:
// - A member that is lost or leaves costs no step: the others halt and go on in a new View. The
// loss
//   of the last one that makes steps ends the run, with the last committed state saved.
// - A member that comes while the run trains learns first, from the leader. When it has shown that
//   it applies steps as the others do, it is admitted with the next View. Until then its loss costs
//   nobody anything.
// - When a teacher is lost before its pupil has everything, the pupil is expelled and may join
//   again. A member that alone has what others still lack may not leave before one of them has it.
// - With fewer than min_members the members halt and wait for others to join.
//
// Pure: no clocks, no messages. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "pipeline/steps/roster.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The first View begins.
void begin(Roster& roster);
// A member is here that was not lost.
void arrive(Roster& roster, std::uint32_t member);
// A member is gone, with its process ("dead") or because it left ("ended").
void lose(Roster& roster, std::uint32_t member, const runtime::Error& error,
          std::string_view state);
// A replica of a newcomer has made so many of the steps that it was taught. `complete`: it has
// taken up its first View.
void note_learned(Roster& roster, std::uint32_t replica, std::uint64_t steps, bool complete);
// `teacher` says that the member learns too slowly.
void note_too_slow(Roster& roster, std::uint32_t member, std::optional<std::uint32_t> teacher);
// A replica took so many seconds for so many micro-batches; `iteration` comes next.
void note_pace(Roster& roster, std::uint32_t replica, std::uint64_t iteration, double micro_batches,
               double seconds);
void note_halted(Roster& roster, std::uint32_t member, const Roster::Report& report);
// An actor on the member's node has failed, and with it this replica if it is one.
void note_failure(Roster& roster, std::optional<std::uint32_t> member,
                  std::optional<std::uint32_t> replica, const runtime::Error& error);
void note_replica_end(Roster& roster, std::uint32_t replica);
// The member wants to leave, or somebody outside wants it to: `why`.
void let_leave(Roster& roster, std::uint32_t member, const std::string& why);
// Time has passed.
void look_after(Roster& roster);
// Training is to end; with an error, the run fails.
void stop(Roster& roster, std::optional<runtime::Error> error);

// What a coordinator that has taken the place of a lost one goes on from. `reports` are of the
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
