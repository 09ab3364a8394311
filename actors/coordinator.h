#pragma once

// Begins and ends the run: waits until every member is there, hears of every end, has the last
// state saved and validated, releases the members and ends its node. A member that fails or is lost
// ends the run for all, with the last committed state saved. In one process there are no members to
// wait for.
//
// Only control messages. Called "coordinator" in the plan; owns all other actors of its node.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "runtime/actor.h"
#include "runtime/transport/gate.h"

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

// A process that should have become a member and ended before.
struct MissingMember {
  std::string node;
  runtime::Error error;
};

struct CoordinatorOptions {
  // What training begins with.
  StatePointer state;
  // Node of each replica; "" for this one.
  std::vector<std::string> replica_nodes{""};
  // All of them.
  std::vector<std::string> loaders{"loader"};
  // Nodes to wait for, whose root actors have the same names; none: all is on this one.
  std::vector<std::string> members;
  // Asked now and then while it waits for them: those that are new since. May be null.
  std::function<std::vector<MissingMember>()> never_to_come;
  bool validate = true;  // there is a Validator
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
  enum class Phase : std::uint8_t { kGathering, kTraining, kSaving, kFlushing };
  void take_joined(runtime::Context& context, const runtime::PeerJoined& peer);
  void lose_member(runtime::Context& context, const std::string& node, const runtime::Error& error);
  void begin(runtime::Context& context);
  void take_end(runtime::Context& context, const ReplicaEnd& end);
  void take_validation(runtime::Context& context, const ValidationResult& result);
  void stop_training(runtime::Context& context, std::optional<runtime::Error> error);
  void replica_ended(runtime::Context& context, std::uint32_t replica);
  void save(runtime::Context& context);
  void flush(runtime::Context& context);
  void release_members(runtime::Context& context);
  void end_run(runtime::Context& context);
  void take_done(runtime::Context& context, std::string_view actor,
                 const std::optional<runtime::Error>& error);
  bool awaits(std::string_view actor) const;

  CoordinatorOptions options_;
  std::shared_ptr<RunOutcome> outcome_;
  Phase phase_ = Phase::kGathering;
  bool stopping_ = false;
  std::set<std::string> absent_;      // members that have not come yet
  std::set<std::string> lost_;        // and those that are gone
  std::set<std::uint32_t> training_;  // replicas that have not ended
  std::vector<std::string> awaited_;  // actors that have still to answer with LastStateDone
  std::uint64_t validations_ = 0;     // see ReplicaEnd
  std::optional<runtime::Error> error_;
  FinishMetrics finish_;  // as far as replicas have ended
};

}  // namespace troupe::actors
