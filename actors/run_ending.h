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
#include "pipeline/steps/roster.h"
#include "pipeline/steps/view.h"
#include "runtime/actor.h"
#include "telemetry/record.h"

namespace troupe::actors {

// The result of a run. The Coordinator fills it; read it when the node has ended.
struct RunOutcome {
  StatePointer state;    // the last committed one; null when no replica could report it
  bool stopped = false;  // by request, before its end
  std::optional<std::string> ended_early;  // why, by train.stop
  double seconds = 0.0;                    // see ReplicaEnd
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
  std::optional<telemetry::BillFacts> bill;  // of a run with pools; the Provisioner's
};

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
  // A replica has ended with this state. If `stop` says so, training ends here.
  void end_early(Context& context, pipeline::Roster& roster,
                 const std::optional<pipeline::StoppingOptions>& stop,
                 const pipeline::TrainingState& state) const;
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
