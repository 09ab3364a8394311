#pragma once

// One compute stream: holds a copy of the training state, computes what its micro-batches
// contribute to each step of the schedule, and applies every reduced step.
//
// Two steps may be under way. While one is being reduced, as much of the next is computed as reads
// nothing that the one in flight writes (pipeline/steps/step_ahead.h), the next iteration's first
// step included, if its micro-batches are here. Is that all of it, its buckets go out too; its
// header follows when the step in front is applied, because it carries the hash of the state
// between them. Buckets leave while the backward pass of the last micro-batches still computes
// those before them. What is computed stays until it is applied, so a retry computes nothing anew.
//
// In another View (pipeline/steps/view.h) the steps under way are contributed again, with
// micro-batches of members that are lost, if some of them are this replica's now: of these alone
// the events are asked for and the gradients computed.
//
// A loader on the head is lost with it: the next one is told in the next View, which it begins.
//
// Ports: in "batches" (Loader), "reduced" (Reducer), control; out "contributions" (Reducer),
// "samples" (Monitor); the
// first of a member also "metrics", "snapshots" (Checkpointer) and "validation" (Validator), which
// it uses as long as its member leads the View. Has a thread of its own. One turn computes at most
// one micro-batch per thread and then looks at its mailbox, so a stop is heard within that time.
// Begins with a state and a View, and ends by sending ReplicaEnd to the coordinator. One whose
// member learns applies what it is given in between, having computed nothing of it, and fails if
// the others' states are not its own.
//
// Trace, besides the handlers: spans "compute SLOT KIND" and "prepare SLOT KIND" per turn, and
// "reduce SLOT KIND" from an attempt's first bucket to its reduced header, with the step as
// argument.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/batches.h"
#include "actors/flight.h"
#include "actors/messages.h"
#include "actors/pace_meter.h"
#include "actors/sample_teller.h"
#include "config/units.h"
#include "model/backend.h"
#include "model/gan.h"
#include "pipeline/steps/iteration_share.h"
#include "pipeline/steps/spot_check.h"
#include "pipeline/steps/step_computer.h"
#include "pipeline/steps/training_state.h"
#include "runtime/actor.h"
#include "runtime/base/thread_team.h"

namespace troupe::actors {

// What all replicas of a node share, read-only; outlives them.
struct TrainingContext {
  const model::Gan& gan;
  const model::Backend& backend;
  const pipeline::TrainingOptions& options;
};

// Steps that a replica can tell again: the Monitor may have missed as many while the head was away.
inline constexpr std::size_t kRememberedSteps = 4096;

struct ReplicaOptions {
  std::uint32_t replica = 0;
  std::string loader = "loader";  // that feeds it, on this node or on the head
  int threads = 1;                // micro-batches computed at a time
  std::int64_t segment_bytes = 1 << 20;
  pipeline::SpotChecks checks;  // members and owners are those of the View
  // False: sends a step when it is complete and waits for it, to see what that costs.
  bool overlap = true;
  config::Every checkpoint;  // snapshots to the Checkpointer
  config::Every validation;  // snapshots to the Validator
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
  enum class Phase : std::uint8_t { kAwaiting, kTraining, kEnded };
  struct Outbox {
    runtime::PortId port;
    std::deque<runtime::Message> messages;
    std::uint64_t sent = 0;
  };
  struct SpanNames {
    std::uint32_t prepare = 0, compute = 0, reduce = 0;
  };

  void begin(runtime::Context& context, const StatePointer& state);
  void share_state(runtime::Context& context, std::uint32_t member);
  bool learns() const { return phase_ == Phase::kTraining && view_ == nullptr; }
  void tell_learned(runtime::Context& context, bool complete);
  void learn(runtime::Context& context, const BucketMessage& body, const runtime::Buffer& sums);
  void learn(runtime::Context& context, const pipeline::StepHeader& header);
  void take_view(runtime::Context& context, ViewPointer view);
  // Micro-batches of an iteration that are this replica's, ascending.
  std::vector<std::uint32_t> own_in(std::uint64_t iteration) const;
  std::size_t most_own() const;
  std::vector<std::uint32_t> missing_of(const pipeline::IterationShare& share) const;
  void lead(runtime::Context& context);
  void tell_step(runtime::Context& context, StepMetrics step);
  void tell_again(runtime::Context& context, std::uint64_t from);
  void tell_untold(runtime::Context& context);
  bool take_over(runtime::Context& context);
  void name_spans(runtime::Context& context);
  void turn(runtime::Context& context);
  bool work(runtime::Context& context);
  bool work_ahead(runtime::Context& context);
  bool begin_step(runtime::Context& context, std::uint64_t step);
  bool gather(runtime::Context& context, std::uint64_t iteration);
  // The next that it is fed; nothing: not all are here, or the replica has failed.
  Batches::Next fed(runtime::Context& context, std::uint64_t iteration,
                    std::span<const std::uint32_t> indices);
  bool is_of_model(const pipeline::Batch& batch) const;
  bool compute(runtime::Context& context, Flight& flight);
  bool prepare(runtime::Context& context, const Flight& flight);
  void release_events(Flight& flight, std::size_t computed);
  void contribute(runtime::Context& context, Flight& flight, std::uint32_t attempt,
                  const std::vector<std::int16_t>& scales);
  void take_bucket(runtime::Context& context, const BucketMessage& body,
                   const runtime::Buffer& sums);
  void take_header(runtime::Context& context, const pipeline::StepHeader& header);
  void refuse(runtime::Context& context, const std::string& what);
  // Of the step that the state is at. False: the replica has ended.
  bool commit(runtime::Context& context, const pipeline::StepRecord& record);
  void commit_flight(runtime::Context& context);
  void tell_samples(runtime::Context& context, const pipeline::StepRecord& record,
                    const StepMetrics& step);
  void tell_gradient(runtime::Context& context, const pipeline::StepRecord& record,
                     std::uint32_t slot);
  void take_pace(runtime::Context& context, const StepMetrics& step);
  StepMetrics metrics_of(const pipeline::StepRecord& record);
  void after_commit(runtime::Context& context, std::uint64_t events, bool epoch_ended);
  void snapshot_if_due(bool epoch_ended);
  void snapshot(Outbox& outbox);
  bool flush(runtime::Context& context, Outbox& outbox);
  void end(runtime::Context& context, std::optional<runtime::Error> error);
  void tell_end(runtime::Context& context);
  void tell_state(runtime::Context& context, std::string_view whom);
  void schedule(runtime::Context& context);
  double lap(runtime::Context& context);
  double& idle_seconds();
  void trace(runtime::Context& context, std::uint32_t name, runtime::TimePoint start,
             std::uint64_t step);
  std::uint64_t next_step() const { return state_.step(training_.options.schedule.size()); }

  ReplicaOptions options_;
  TrainingContext training_;
  pipeline::TrainingState state_;
  std::unique_ptr<runtime::ThreadTeam> team_;
  std::unique_ptr<pipeline::StepComputer> computer_;

  Phase phase_ = Phase::kAwaiting;
  std::optional<ReplicaEnd> end_;  // what was told of it
  ViewPointer view_;               // null: none was told
  std::uint32_t feed_ = 0;
  bool leads_ = false;
  Batches batches_;
  std::deque<runtime::Message> lessons_;  // before the state has come, with their credit
  std::uint64_t learned_steps_ = 0;
  std::optional<pipeline::StepRecord> learned_;          // of the next step, as far as it is here
  std::shared_ptr<pipeline::IterationShare> iteration_;  // the newest that was begun
  // Iterations under way that lack micro-batches it has taken over, and which; in order.
  struct Incomplete {
    std::shared_ptr<pipeline::IterationShare> share;
    std::vector<std::uint32_t> missing;
  };
  std::deque<Incomplete> incomplete_;
  std::deque<Flight> flights_;                   // in order, the first is next_step(); two at most
  std::optional<std::uint64_t> last_iteration_;  // end of data was seen
  runtime::Hash128 state_hash_;                  // of state_
  bool checkpoint_requested_ = false;
  Outbox contributions_, snapshots_, validations_;  // the first holds no more than flights_ do
  runtime::PortId metrics_;
  SampleTeller samples_;
  std::array<std::optional<runtime::TimePoint>, 2> gradient_told_;  // by network
  runtime::TimerId turn_;
  std::vector<SpanNames> spans_;  // per slot

  runtime::TimePoint lap_{0};
  PaceMeter pace_;
  std::deque<StepMetrics> last_steps_;  // the newest committed, in order
  std::deque<StepMetrics> untold_;      // of these, what waits for credit, and new ones behind
  bool next_is_again_ = false;          // there was nothing to tell again
  double load_seconds_ = 0.0, compute_seconds_ = 0.0, reduce_seconds_ = 0.0;
  runtime::TimePoint timed_from_{0}, timed_to_{0};
  std::uint64_t timed_events_ = 0;
  std::uint64_t first_iteration_ = 0;
};

}  // namespace troupe::actors
