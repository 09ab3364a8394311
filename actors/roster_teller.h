#pragma once

// Carries out what the roster rules say (pipeline/steps/roster.h): sends it to members and to the
// Monitor, and logs it. Also lets members leave that somebody asks to, from outside (`troupe
// drain`) or as the Provisioner, and answers. The Coordinator's; one thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "actors/messages.h"
#include "actors/run_ending.h"
#include "pipeline/steps/roster.h"
#include "runtime/actor.h"
#include "runtime/base/error.h"
#include "runtime/transport/head_request.h"

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
  void drain(Context& context, const runtime::RequestAsked& asked);
  // The Provisioner's wish; it hears of members that are kept.
  void let_go(Context& context, const LetGo& asked);
  // Tells those that keep account of nodes.
  void tell_change(Context& context, const NodeChange& change) const;
  // Answers all that wait for the member to leave.
  void answer_drains(std::uint32_t member, const runtime::Result<std::string>& answer);

 private:
  void let_leave(Context& context, std::uint32_t member, const std::string& why);
  void await_another(Context& context, const pipeline::AwaitAnother& awaited) const;
  void tell_likely_view(Context& context, std::uint32_t newcomer) const;
  void tell_members(Context& context, RunOutcome::ViewChange& change,
                    std::optional<std::uint32_t> parted) const;
  void tell_view(Context& context, const pipeline::TellView& told);

  const CoordinatorOptions& options_;
  pipeline::Roster& roster_;
  RunOutcome& outcome_;
  RunEnding& ending_;
  std::multimap<std::uint32_t, std::shared_ptr<runtime::RequestReply>> drains_;  // by member
  std::optional<std::uint64_t> untold_from_;
};

}  // namespace troupe::actors
