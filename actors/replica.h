#pragma once

// One compute stream of a run: a copy of the training state, which every reduced step is applied
// to. actors/step_engine.h says what it computes and when, actors/newcomer.h what it is taught
// before its member is in a View, and actors/step_teller.h what it tells of its steps. This actor
// receives, sends, and keeps the order between them.
//
// It begins with a state and a View, and ends by sending ReplicaEnd to the coordinator. A loader on
// the head is lost with the head; the next one is told what to feed in the next View.
//
// Ports: in "batches" (Loader), "reduced" (Reducer), control; out "contributions" (Reducer),
// "samples" (Monitor); the first replica of a member also "metrics", "snapshots" (Checkpointer) and
// "validation" (Validator), which it uses while its member leads the View. A replica has a thread
// of its own. One turn computes at most one micro-batch per thread of its team and then looks at
// the mailbox, so a stop is heard within that time.
//
// Trace, besides the handlers: spans "compute SLOT KIND" and "prepare SLOT KIND" per turn, and
// "reduce SLOT KIND" from an attempt's first bucket to its reduced header, with the step as
// argument.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.h"
#include "actors/newcomer.h"
#include "actors/outbox.h"
#include "actors/step_engine.h"
#include "actors/step_teller.h"
#include "config/topology.h"
#include "config/units.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct ReplicaOptions : StepEngineOptions {
  std::string loader = "loader";  // the one that feeds this replica, on this node or on the head
  config::CheckpointerSection checkpointer;  // when it takes snapshots
};

// Copies of a replica's state on their way to the Checkpointer and the Validator.
class Snapshots {
 public:
  Snapshots(config::Every checkpoint, config::Every validation)
      : checkpoint_(checkpoint), validation_(validation) {}

  // In start(): finds the out ports "snapshots" and "validation". Where the plan wires none, no
  // snapshots are taken for it.
  void start(runtime::Context& context);
  // A checkpoint is wanted after the next step, whether one is due or not.
  void request() { requested_ = true; }
  // A step was applied, and this is the state. The leading replica calls this.
  void take_if_due(const pipeline::TrainingState& state, bool epoch_ended);
  // The Validator is to judge this state, before `step`, and to tell the figure that train.stop
  // reads.
  void take_for_figure(runtime::Context& context, const pipeline::TrainingState& state,
                       std::uint64_t step);
  // Sends what credit allows. False: a snapshot still waits.
  bool flush(runtime::Context& context) {
    return checkpoints_.flush(context) && validations_.flush(context);
  }
  bool waits() const { return !checkpoints_.empty() || !validations_.empty(); }
  // How many the Validator was sent, which is another one where the head is another one.
  std::uint64_t validations() const { return validations_.sent(); }
  void forget_validations() { validations_.forget_sent(); }

 private:
  config::Every checkpoint_, validation_;
  bool requested_ = false;
  Outbox checkpoints_, validations_;
};

class Replica final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  Replica(ReplicaOptions options, TrainingContext training);

  void start(Context& context) override;
  // A message that may come in any phase is taken; lessons that come before the state are kept;
  // after its end a replica only tells of that again.
  void receive(Context& context, Message message) override;
  void credit_returned(Context& context, std::string_view port) override;
  // A turn.
  void timer(Context& context, runtime::TimerId id) override;
  // Snapshots come back when nobody looks at them any more because the run is stopped. While the
  // head is away anything for it comes back, and the next head asks for what it lacks.
  void undeliverable(Context&, Message, const runtime::Error&) override {}
  std::string waiting_for() const override;

 private:
  enum class Phase : std::uint8_t { kAwaiting, kTraining, kEnded };
  // Names of the spans of one slot.
  struct SpanNames {
    std::uint32_t prepare = 0, compute = 0, reduce = 0;
  };

  void receive_batch(Context& context, const BatchMessage& body, Message& message);
  void receive_end_of_data(Context& context, const EndOfData& end, Message& message);
  void receive_bucket(Context& context, const BucketMessage& body, Message& message);
  void receive_header(Context& context, const HeaderMessage& body);
  void receive_view(Context& context, const ViewMessage& told);
  void receive_begin(Context& context, const BeginTraining& beginning, Message& message);
  void receive_share_state(Context& context, const ShareState& share);
  void receive_tell_state(Context& context, const TellState&, Message& message);
  void receive_tell_steps(Context& context, const TellSteps& asked);
  void receive_stop(Context& context, const StopTraining&);
  void receive_checkpoint_request(Context& context, const CheckpointRequest&);
  void receive_figure(Context& context, const FigureFound& found);

  // It has a state, and its member is in no View yet.
  bool has_no_view() const { return phase_ == Phase::kTraining && view_ == nullptr; }
  // Applies the record of a step, and tells of it. False: the replica has ended.
  bool commit(Context& context, const pipeline::StepRecord& record);
  void end(Context& context, std::optional<runtime::Error> error);
  void tell_learned(Context& context, bool complete);
  void schedule(Context& context);
  StepEngine::Hooks hooks(Context& context);

  ReplicaOptions options_;
  TrainingContext training_;
  std::unique_ptr<StepEngine> engine_;  // from start() on
  Newcomer newcomer_;
  StepTeller teller_;
  Snapshots snapshots_;
  Outbox contributions_;  // no more than the steps under way
  Phase phase_ = Phase::kAwaiting;
  std::optional<ReplicaEnd> end_;  // as it was told
  ViewPointer view_;               // null: it was told of none
  bool leads_ = false;             // the View
  runtime::TimerId turn_;
  std::vector<SpanNames> spans_;  // per slot
  Laps laps_;
  IterationTimes times_;
};

}  // namespace troupe::actors
