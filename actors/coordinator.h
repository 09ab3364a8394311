#pragma once

// Owner of all other actors of the run: hears of every end, has the last state saved and validated,
// and ends the node. In one process it decides nothing else; membership of several is a later step.
//
// Only control messages. Called "coordinator" in the plan.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "runtime/actor.h"

namespace troupe::actors {

// What a run came to. Filled by the Coordinator; to be read when the node has ended.
struct RunOutcome {
  StatePointer state;    // last committed; null when no replica could report
  bool stopped = false;  // by request, before its end
  double seconds = 0.0;  // see ReplicaEnd
  std::uint64_t timed_events = 0;
  bool saved = false;  // the state is in a checkpoint
  // The newest validation, as text for people and as JSON.
  struct Validation {
    std::string table;
    std::string json;
  };
  std::optional<Validation> validation;
};

struct CoordinatorOptions {
  std::uint32_t replicas = 1;
  bool validate = true;  // there is a Validator
};

class Coordinator final : public runtime::Actor {
 public:
  Coordinator(CoordinatorOptions options, std::shared_ptr<RunOutcome> outcome);

  void receive(runtime::Context& context, runtime::Message message) override;
  void stop(runtime::Context& context) override;
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override;
  std::string waiting_for() const override;

 private:
  enum class Phase : std::uint8_t { kTraining, kSaving, kFlushing };
  void take_end(runtime::Context& context, const ReplicaEnd& end);
  void take_validation(runtime::Context& context, const ValidationResult& result);
  void stop_training(runtime::Context& context, std::optional<runtime::Error> error);
  void save(runtime::Context& context);
  void take_done(runtime::Context& context, std::string_view actor,
                 const std::optional<runtime::Error>& error);
  bool awaits(std::string_view actor) const;

  CoordinatorOptions options_;
  std::shared_ptr<RunOutcome> outcome_;
  Phase phase_ = Phase::kTraining;
  bool stopping_ = false;
  std::uint32_t replicas_ended_ = 0;
  std::vector<std::string> awaited_;  // actors that have still to answer with LastStateDone
  std::uint64_t validations_ = 0;     // see ReplicaEnd
  std::optional<runtime::Error> error_;
  std::optional<StepMetrics> last_step_;     // the newest that a replica other than 0 committed
  std::optional<std::uint64_t> said_until_;  // steps under it replica 0 told the Monitor
};

}  // namespace troupe::actors
