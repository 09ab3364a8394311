#pragma once

// The end of a run, for the Coordinator: gathers the last words of the replicas, has the last state
// saved and validated, has the metrics written, and releases the members.
//
//   save      the Checkpointer and the Validator get the last state
//   flush     when both are done, the Monitor writes what it has been told
//   end       when it has, the members are released and the node ends
//
// One thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/run_outcome.h"
#include "pipeline/steps/roster.h"
#include "runtime/actor.h"

namespace troupe::actors {

class RunEnding {
  using Context = runtime::Context;

 public:
  RunEnding(std::shared_ptr<RunOutcome> outcome, bool validate)
      : outcome_(std::move(outcome)), validate_(validate) {}

  // The first error is the run's.
  void note(const std::optional<runtime::Error>& error) {
    if (error && !error_) error_ = error;
  }
  // The last word of a replica; `leads`: of the leading one.
  void add(const ReplicaEnd& end, bool leads);
  // No replica trains any more.
  void save(Context& context, const pipeline::Roster& roster);
  // An actor that was told to save, validate or write has done so, or has ended.
  void take_done(Context& context, const pipeline::Roster& roster, std::string_view actor,
                 const std::optional<runtime::Error>& error);
  // The Validator waits for snapshots of the leader, which is lost: it is told not to.
  void forget_leader(Context& context, const pipeline::Roster& roster) const;
  bool awaits(std::string_view actor) const;
  void release_members(Context& context, const pipeline::Roster& roster) const;
  // Releases the members and ends the node, with the run's error if there is one.
  void end(Context& context, const pipeline::Roster& roster) const;

  std::string waiting_for() const;

 private:
  LastState last_state(const pipeline::Roster& roster) const;
  void flush(Context& context);

  std::shared_ptr<RunOutcome> outcome_;
  bool validate_;
  std::optional<runtime::Error> error_;
  std::map<std::uint32_t, std::uint64_t> validations_;  // by replica; see ReplicaEnd
  FinishMetrics finish_;                                // what the replicas have told so far
  bool flushing_ = false;
  std::vector<std::string> awaited_;  // actors that have still to answer with LastStateDone
};

}  // namespace troupe::actors
