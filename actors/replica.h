#pragma once

// One compute stream: holds a copy of the training state, computes what its micro-batches
// contribute to each step of the schedule, and applies every reduced step. What of the next step
// needs nothing the step in flight writes is computed while that is being reduced.
//
// Ports: in "batches" (Loader), "reduced" (Reducer), control; out "contributions" (Reducer),
// "metrics"; replica 0 also "snapshots" (Checkpointer) and "validation" (Validator). Has a thread
// of its own. One turn computes at most one micro-batch per thread and then looks at its mailbox,
// so a stop is heard within that time. Ends by sending ReplicaEnd to the coordinator.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "config/units.h"
#include "model/backend/backend.h"
#include "model/gan.h"
#include "pipeline/buckets.h"
#include "pipeline/iteration_share.h"
#include "pipeline/training_state.h"
#include "runtime/actor.h"
#include "runtime/base/thread_team.h"

namespace troupe::actors {

// What all replicas of a node share, read-only; outlives them.
struct TrainingContext {
  const model::Gan& gan;
  const model::Backend& backend;
  const pipeline::TrainingOptions& options;
};

struct ReplicaOptions {
  std::uint32_t replica = 0;
  int threads = 1;                  // micro-batches computed at a time
  std::uint32_t micro_batches = 0;  // of an iteration that are its own
  std::int64_t segment_bytes = 1 << 20;
  config::Every checkpoint;  // snapshots to the Checkpointer; replica 0 only
  config::Every validation;  // snapshots to the Validator; replica 0 only
};

class Replica final : public runtime::Actor {
 public:
  Replica(ReplicaOptions options, TrainingContext training);

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void credit_returned(runtime::Context& context, std::string_view port) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  std::string waiting_for() const override;

 private:
  enum class Phase : std::uint8_t { kAwaiting, kGathering, kComputing, kReducing, kEnded };
  struct Outbox {
    runtime::PortId port;
    std::deque<runtime::Message> messages;
    std::uint64_t sent = 0;
  };

  void begin(runtime::Context& context, const StatePointer& state);
  void turn(runtime::Context& context);
  void gather(runtime::Context& context);
  void contribute(runtime::Context& context, std::uint32_t attempt,
                  std::vector<std::int16_t> scales);
  bool prepare_next();
  void take_bucket(runtime::Context& context, const BucketMessage& body,
                   const runtime::Buffer& sums);
  void take_header(runtime::Context& context, const pipeline::StepHeader& header);
  void commit(runtime::Context& context);
  void after_commit(runtime::Context& context, bool epoch_ended);
  void snapshot(Outbox& outbox);
  bool flush(runtime::Context& context, Outbox& outbox);
  void end(runtime::Context& context, std::optional<runtime::Error> error);
  void schedule(runtime::Context& context);
  double lap(runtime::Context& context);

  ReplicaOptions options_;
  TrainingContext training_;
  pipeline::TrainingState state_;
  std::unique_ptr<runtime::ThreadTeam> team_;
  std::unique_ptr<pipeline::IterationShare> share_;

  Phase phase_ = Phase::kAwaiting;
  std::deque<runtime::Message> ahead_;    // batches of this and later iterations, with their credit
  std::vector<runtime::Message> in_use_;  // of the iteration at hand
  std::optional<std::uint64_t> last_iteration_;  // end of data was seen
  runtime::Hash128 state_hash_;                  // of state_
  pipeline::StepRecord record_;                  // of the step in flight
  bool checkpoint_requested_ = false;
  Outbox contributions_, snapshots_, validations_;
  runtime::PortId metrics_;
  runtime::TimerId turn_;

  runtime::TimePoint lap_{0};
  std::optional<StepMetrics> last_step_;  // the newest committed
  double load_seconds_ = 0.0, compute_seconds_ = 0.0, reduce_seconds_ = 0.0;
  runtime::TimePoint timed_from_{0}, timed_to_{0};
  std::uint64_t timed_events_ = 0;
  std::uint64_t first_iteration_ = 0;
};

}  // namespace troupe::actors
