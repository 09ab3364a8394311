#pragma once

// Carries out what the roster rules say (pipeline/steps/roster.h): sends it to members and to the
// Monitor, and logs it. Also takes requests from outside (`troupe drain`) that a member leave, and
// answers them. The Coordinator's; one thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "actors/run_ending.h"
#include "pipeline/steps/roster.h"
#include "runtime/actor.h"
#include "runtime/base/error.h"
#include "runtime/transport/drain.h"

namespace troupe::actors {

struct CoordinatorOptions;

class RosterTeller {
  using Context = runtime::Context;

 public:
  // All of these outlive it.
  RosterTeller(const CoordinatorOptions& options, pipeline::Roster& roster, RunOutcome& outcome,
               RunEnding& ending)
      : options_(options), roster_(roster), outcome_(outcome), ending_(ending) {}

  // Behind the next View the leader is asked to tell the Monitor all steps from this one on, and
  // for a checkpoint.
  void ask_for_steps_from(std::uint64_t step) { untold_from_ = step; }
  // Carries out the roster's actions, and takes them away.
  void carry_out(Context& context);
  // Somebody asks that a member leave. The answer is sent when it has, or at once when it cannot.
  void drain(Context& context, const runtime::DrainAsked& asked);
  // Answers all that wait for the member to leave.
  void answer_drains(std::uint32_t member, const runtime::Result<void>& answer);

 private:
  void tell_members(Context& context, RunOutcome::ViewChange& change) const;
  void tell_view(Context& context, const pipeline::TellView& told);

  const CoordinatorOptions& options_;
  pipeline::Roster& roster_;
  RunOutcome& outcome_;
  RunEnding& ending_;
  std::multimap<std::uint32_t, std::shared_ptr<runtime::DrainReply>> drains_;  // by member
  std::optional<std::uint64_t> untold_from_;
};

}  // namespace troupe::actors
