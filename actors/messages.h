#pragma once

// Everything Troupe's actors say to each other. Payload Buffers are listed with each body.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/steps/reduction_format.h"
#include "pipeline/steps/step_record.h"
#include "pipeline/steps/training_state.h"
#include "pipeline/steps/view.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "telemetry/node_sample.h"
#include "telemetry/record.h"

namespace troupe::actors {

using StatePointer = std::shared_ptr<const pipeline::TrainingState>;

// Coordinator -> Replica, control: everyone is there; train from this state. Replica -> Replica of
// a member that learns, control: this is the state.
struct BeginTraining {
  static constexpr std::string_view kName = "begin-training";
  StatePointer state;
};

using ViewPointer = std::shared_ptr<const pipeline::View>;

// Coordinator -> Reducer, control: take part in no step any more, and answer with Halted.
struct Halt {
  static constexpr std::string_view kName = "halt";
  pipeline::ViewId change;
};

// Reducer -> Coordinator, control: all replicas of the node have, or will have before anything that
// comes later, the sums of all steps before next_step, and none of any other. 0 of one that has
// neither been in a View nor begun to learn.
struct Halted {
  static constexpr std::string_view kName = "halted";
  pipeline::ViewId change;
  std::uint64_t next_step = 0;
  // Of sums that are kept for members that lack them or learn: those of the newest step, and what
  // waits for each that learns.
  std::uint64_t kept_bytes = 0;
  ViewPointer view = nullptr;  // that the member is in; null: in none yet
};

// Coordinator -> Reducer, control, and Reducer -> its replicas, data, behind the sums of all steps
// before the View: who makes the steps from here on. The first one begins training.
struct ViewMessage {
  static constexpr std::string_view kName = "view";
  ViewPointer view;
};

// Coordinator -> Reducer, control: let this member know all that comes of the steps from here on,
// or no more. It is in no View.
struct Teach {
  static constexpr std::string_view kName = "teach";
  std::uint32_t member = 0;
  bool begins = true;
};

// Member -> its Reducer, control: the node has met that fellow, so that it can be taught. Never
// leaves the node.
struct FellowMet {
  static constexpr std::string_view kName = "fellow-met";
  std::string node;
};

// Reducer -> Coordinator, control: that member learns more slowly than steps are made, and is
// taught no more.
struct TooSlow {
  static constexpr std::string_view kName = "too-slow";
  std::uint32_t member = 0;
};

// Reducer -> Reducer of a member that learns, data: the sums of all steps from this one on follow,
// each as RingBucket and RingHeader of the View kLesson. Its replicas are sent the state by the
// teacher's first replica.
struct Lesson {
  static constexpr std::string_view kName = "lesson";
  std::uint64_t next_step = 0;
};
inline constexpr pipeline::ViewId kLesson{0, 1};

// Reducer -> its first replica, data: send the state between the sums before and those that come
// after this to the replicas of that member, as BeginTraining.
struct ShareState {
  static constexpr std::string_view kName = "share-state";
  std::uint32_t member = 0;
};

// Replica -> Coordinator, control: it was taught a state, and has since made of it in `steps` steps
// what the others have made of theirs: none, and again when they are kProvenSteps. Once more when
// it takes up the first View that it is in.
struct Learned {
  static constexpr std::string_view kName = "learned";
  std::uint32_t replica = 0;
  std::uint64_t steps = 0;
  // Its node has all that the View is to go on from, and lacks nothing of who has taught it.
  bool complete = false;
};
inline constexpr std::uint64_t kProvenSteps = 2;

// Replica -> Coordinator, control, when an epoch has ended: for how many micro-batches of whole
// iterations, all slots of each, it took so long, waiting for their events included.
struct Pace {
  static constexpr std::string_view kName = "pace";
  std::uint32_t replica = 0;
  std::uint64_t iteration = 0;  // that comes next
  std::uint64_t micro_batches = 0;
  double seconds = 0.0;
};

// Replica -> Loader that feeds it, control: these micro-batches at once, then those of the View
// that are the replica's, from `iteration` on. Nothing of an earlier feed is wanted any more.
struct Feed {
  static constexpr std::string_view kName = "feed";
  struct Missing {
    std::uint64_t iteration = 0;
    std::vector<std::uint32_t> micro_batches;
    bool operator==(const Missing&) const = default;
  };
  std::uint32_t replica = 0;
  std::uint32_t number = 0;  // of the replica's feeds
  ViewPointer view;
  std::vector<Missing> missing;
  std::uint64_t iteration = 0;
};

// Loader -> Replica, data: one micro-batch. Payloads: images, conditions, event ids, as
// pipeline::Batch has them.
struct BatchMessage {
  static constexpr std::string_view kName = "batch";
  std::uint64_t iteration = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t events = 0;
  std::uint32_t feed = 0;     // that it belongs to
  std::uint32_t replica = 0;  // that it is for
};

// Loader -> Replica, data: training ends after the iterations before `iterations`. Before all
// micro-batches of a feed.
struct EndOfData {
  static constexpr std::string_view kName = "end-of-data";
  std::uint64_t iterations = 0;
};

// Replica -> Reducer and back, data: elements [begin, end) of a step's contribution vector.
// Payload: int64 or float per element, as pipeline/steps/sum_layout.h has it; the replica's part on
// the way there, the sum over all replicas of the run on the way back.
struct BucketMessage {
  static constexpr std::string_view kName = "bucket";
  std::uint64_t step = 0;
  std::uint32_t attempt = 0;
  std::uint32_t bucket = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool floats = false;
  pipeline::ViewId view{};  // that the part is computed in; of no account on the way back
};

// Replica -> Reducer, then Reducer -> Replica, data: follows the last bucket of a step's attempt.
struct HeaderMessage {
  static constexpr std::string_view kName = "header";
  pipeline::StepHeader header;
  pipeline::ViewId view{};  // as of a bucket
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(header.exponents.size() * sizeof(std::int16_t));
  }
};

// Reducer -> next Reducer of the ring, data: a bucket on its way round. Payload: int64 per element,
// or floats in the format. Of the step before the View's first: from who has its sums to who lacks
// them, summed.
struct RingBucket {
  static constexpr std::string_view kName = "ring-bucket";
  BucketMessage bucket;
  bool summed = false;  // of all members; else of those between the bucket's beginning and here
  std::optional<pipeline::ReductionFormat> format;  // of floats
};

// Reducer -> next Reducer of the ring, data: the header on its way round. Of the step before the
// View's first: as a bucket, behind all of them.
struct RingHeader {
  static constexpr std::string_view kName = "ring-header";
  pipeline::StepHeader header;
  bool combined = false;  // of all members; else of those between its beginning and here
  pipeline::ViewId view{};
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(header.exponents.size() * sizeof(std::int16_t));
  }
};

// Replica -> Checkpointer, Replica -> Validator, data: a committed state, never changed again.
struct Snapshot {
  static constexpr std::string_view kName = "snapshot";
  StatePointer state;
};

// Coordinator that has taken the place of another -> leader's replica, control: tell the Monitor
// all steps from this one on again, as far as they are remembered.
struct TellSteps {
  static constexpr std::string_view kName = "tell-steps";
  std::uint64_t from = 0;
};

// Leader's replica -> Monitor, metrics: a committed step. Another leader tells the newest again.
struct StepMetrics {
  static constexpr std::string_view kName = "step-metrics";
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  std::uint64_t iteration = 0;
  std::uint32_t slot = 0;
  std::uint32_t attempts = 1;
  std::uint64_t events = 0;
  std::uint64_t event_sum = 0;  // of the step's header: which events they were
  std::vector<double> losses;   // in the order of GanDescription::losses
  // How the time since the step before was spent; they add up to it.
  double load_seconds = 0.0;     // waiting for micro-batches
  double compute_seconds = 0.0;  // computing, what of the next step was computed meanwhile included
  double reduce_seconds = 0.0;   // waiting for the sum with nothing to compute
  double apply_seconds = 0.0;
  runtime::Hash128 state_hash;  // before the step
  bool again = false;           // told before, or the next after those
};

// Replica -> Coordinator, control: the last committed state.
struct ReplicaEnd {
  static constexpr std::string_view kName = "replica-end";
  std::uint32_t replica = 0;
  StatePointer state;  // null: it never began
  std::optional<runtime::Error> error;
  double seconds = 0.0;                  // wall time of the committed iterations after the first
  std::uint64_t timed_events = 0;        // events of those iterations, over all members
  std::optional<StepMetrics> last_step;  // the newest it committed
  std::uint64_t validations = 0;         // snapshots it sent to the Validator
};

// Member -> Coordinator, control: the node's link to another member is gone.
struct FellowLost {
  static constexpr std::string_view kName = "fellow-lost";
  std::string node;
  runtime::Error error;
};

// Member -> Coordinator, control: the node was told to end, and will when it is released.
struct Leaving {
  static constexpr std::string_view kName = "leaving";
};

// Coordinator -> Member, control: the others go on without it.
struct Expelled {
  static constexpr std::string_view kName = "expelled";
  runtime::Error error;
};

// Coordinator -> Replica, control: abandon the step in flight and report.
struct StopTraining {
  static constexpr std::string_view kName = "stop-training";
};

// Member -> Coordinator, control: something on its node failed, so that the run cannot go on.
struct MemberFailed {
  static constexpr std::string_view kName = "member-failed";
  std::string actor;  // that failed, and will report nothing any more
  runtime::Error error;
};

// Coordinator -> Member, control: the run is over, or the others go on without it.
struct Release {
  static constexpr std::string_view kName = "release";
  std::string why;  // for people; "" when it has asked for it itself, or the run is over
};

// Coordinator -> Replica, control: send a snapshot to the Checkpointer after the next commit.
struct CheckpointRequest {
  static constexpr std::string_view kName = "checkpoint-request";
};

// Coordinator -> Checkpointer, Validator, control: this state is the run's last; answer with
// LastStateDone.
struct LastState {
  static constexpr std::string_view kName = "last-state";
  StatePointer state;
  // Snapshots of this replica that come before it, although it overtakes them: the Validator waits
  // for so many.
  std::uint64_t snapshots = 0;
  std::string leader;
};

// Checkpointer, Validator, Monitor -> Coordinator, control.
struct LastStateDone {
  static constexpr std::string_view kName = "last-state-done";
  std::optional<runtime::Error> error;
};

// Validator -> Coordinator, control: what the state's generator is worth.
struct ValidationResult {
  static constexpr std::string_view kName = "validation-result";
  StatePointer state;
  double figure_of_merit = 0.0;  // lower is better; infinite when there is none
  std::string table;             // text, for people
  std::string json;              // the same, for machines
};

// Coordinator -> Checkpointer, control: keep this state if it is the best so far.
struct ValidatedState {
  static constexpr std::string_view kName = "validated-state";
  StatePointer state;
  double figure_of_merit = 0.0;
};

// Any -> Monitor, metrics: something worth a line: a checkpoint written, a validation.
struct EventMetrics {
  static constexpr std::string_view kName = "event-metrics";
  telemetry::Record record;  // a checkpoint, a validation or a View; without its time
};

// Validator -> Monitor, metrics: what people look at of the state before `step`. Both are on one
// node, so it never leaves it.
struct ShowersMetrics {
  static constexpr std::string_view kName = "showers-metrics";
  std::uint64_t step = 0;
  std::string json;  // one object, as model/physics/shower_report.h makes it
  std::int64_t bytes() const { return static_cast<std::int64_t>(json.size()); }
};

// A number that an actor tells of itself: docs/watching.md lists the names.
struct Sample {
  std::string name;  // kMostSampleName at most, of a-z 0-9 _ . - /
  double value = 0.0;
  bool operator==(const Sample&) const = default;
};
inline constexpr std::size_t kMostSampleName = 64;

// Any -> Monitor, metrics: numbers in the order in which they came about, kMostSamples at most.
// With the sender's name they are values of the series SENDER/NAME. Nobody waits for them, and what
// is dropped on the way changes nothing but curves.
struct SampleMetrics {
  static constexpr std::string_view kName = "sample-metrics";
  std::vector<Sample> samples;
  // The same in every build, so that both ends of a link count alike.
  std::int64_t bytes() const {
    std::size_t sum = 0;
    for (const Sample& sample : samples) sum += 16 + sample.name.size();
    return static_cast<std::int64_t>(sum);
  }
};
inline constexpr std::size_t kMostSamples = 128;

// Monitor -> Member, control: tell what your node does.
struct Probe {
  static constexpr std::string_view kName = "probe";
  enum class Wants : std::uint8_t { kNothing, kTrace, kWaits };  // besides
  std::uint64_t request = 0;   // that wants it; 0: nothing more is wanted
  runtime::TimePoint sent{0};  // on the head's clock
  Wants wants = Wants::kNothing;
};

// Member -> Monitor, metrics: the answer. At most one payload, what is wanted besides, as far as
// the node can tell it: what its actors did lately, as telemetry::pack_actors() has it, or who
// waits for whom, text.
struct NodeReport {
  static constexpr std::string_view kName = "node-report";
  static constexpr std::size_t kMostContents = std::size_t{4} << 20;
  std::uint64_t request = 0;  // these three as in the Probe
  runtime::TimePoint sent{0};
  Probe::Wants wants = Probe::Wants::kNothing;
  runtime::TimePoint answered{0};  // on the member's clock
  telemetry::NodeSample sample;
  std::int64_t bytes() const;
};

// Member -> its first replica, control: tell which state you have. Its answer, with the last
// committed one; null of a replica that has not begun. Neither leaves the node.
struct TellState {
  static constexpr std::string_view kName = "tell-state";
};
struct OwnState {
  static constexpr std::string_view kName = "own-state";
  StatePointer state;
};

// Coordinator -> Monitor, control: a node came, went or was lost.
struct NodeChange {
  static constexpr std::string_view kName = "node-change";
  std::string node, host;  // host: "" when it was told before
  std::uint64_t pid = 0;   // 0: the same
  std::string address;     // as the head sees it
  std::string state;       // "joining" while it learns, "running", "ended", "dead"
  std::string cause;       // of the last two
};

// Coordinator -> Checkpointer, control, and on behind the last metrics -> Monitor: everything was
// said; finish writing and answer the Coordinator with LastStateDone.
struct FinishMetrics {
  static constexpr std::string_view kName = "finish-metrics";
  // The leader has told the Monitor all steps below it, and some may still be on their way.
  std::uint64_t told_until = 0;
  // The newest committed step. The leader may have been stopped before it, or be lost.
  std::optional<StepMetrics> newest;
};

}  // namespace troupe::actors
