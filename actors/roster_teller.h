#pragma once

// Carries out what the roster rules say (pipeline/steps/roster_rules.h): sends it to members, to
// the Monitor and to those that have asked for something, and logs it. The Coordinator's; one
// thread.

#include <cstdint>
#include <optional>

#include "actors/drains.h"
#include "actors/run_ending.h"
#include "actors/run_outcome.h"
#include "pipeline/steps/roster_rules.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct CoordinatorOptions;

class RosterTeller {
  using Context = runtime::Context;

 public:
  // All of these outlive it.
  RosterTeller(const CoordinatorOptions& options, pipeline::Roster& roster, RunOutcome& outcome,
               RunEnding& ending, Drains& drains)
      : options_(options), roster_(roster), outcome_(outcome), ending_(ending), drains_(drains) {}

  // Behind the next View the leader is asked to tell the Monitor all steps from this one on, and
  // for a checkpoint.
  void ask_for_steps_from(std::uint64_t step) { untold_from_ = step; }
  // Carries out the roster's actions, and takes them away.
  void carry_out(Context& context);

 private:
  void tell_members(Context& context, RunOutcome::ViewChange& change) const;
  void tell_view(Context& context, const pipeline::TellView& told);

  const CoordinatorOptions& options_;
  pipeline::Roster& roster_;
  RunOutcome& outcome_;
  RunEnding& ending_;
  Drains& drains_;
  std::optional<std::uint64_t> untold_from_;
};

}  // namespace troupe::actors
