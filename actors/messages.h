#pragma once

// Everything Troupe's actors say to each other. Payload Buffers are listed with each body.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/plan.h"
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

using config::replica_name;

using StatePointer = std::shared_ptr<const pipeline::TrainingState>;

// Coordinator -> Replica, control: all members are here; train from this state. Replica -> Replica
// of a member that learns, control: this is the state that the lessons begin with.
struct BeginTraining {
  static constexpr std::string_view kName = "begin-training";
  StatePointer state;
  // From a Replica: the process that it is meant for, of those that have been the member one after
  // the other (config::member_process()). Another one passes it over.
  std::uint32_t process = 1;
};

using ViewPointer = std::shared_ptr<const pipeline::View>;

// Coordinator -> Reducer, control: stop taking part in steps, and answer with Halted.
struct Halt {
  static constexpr std::string_view kName = "halt";
  pipeline::ViewId change;
  bool planned = false;  // nobody is lost: it stops nothing that is begun, which is finished
};

// Reducer -> Coordinator, control: all replicas of the node have the sums of all steps before
// next_step, or get them before anything else, and they have no sums of other steps. next_step is 0
// for a member that has neither been in a View nor begun to learn.
struct Halted {
  static constexpr std::string_view kName = "halted";
  pipeline::ViewId change;
  std::uint64_t next_step = 0;
  // In a planned change the first step that the member does not begin before it has the View. It
  // goes on with those before, whose sums are not complete here. Else next_step.
  std::uint64_t unbegun = 0;
  // The sums that are kept for other members: those of the newest step, and what waits for each
  // member that learns.
  std::uint64_t kept_bytes = 0;
  ViewPointer view = nullptr;  // the View that the member is in; null: in none yet
};

// Coordinator -> Reducer, Provisioner, control, and Reducer -> its replicas, data, behind the sums
// of all steps before the View: who makes the steps from here on. The first View begins training.
struct ViewMessage {
  static constexpr std::string_view kName = "view";
  ViewPointer view;
};

// Reducer -> Coordinator, control: this member has the sums of all steps before the planned View,
// and needs nothing any more of a member that was in its View before and is not in this one.
struct Entered {
  static constexpr std::string_view kName = "entered";
  pipeline::ViewId view;
};

// Coordinator -> Reducer, control: begin to send this member the sums of all steps, or stop. The
// member is in no View.
struct Teach {
  static constexpr std::string_view kName = "teach";
  std::uint32_t member = 0;
  bool begins = true;
  std::uint32_t process = 1;  // which of those that have been the member one after the other
};

// Member -> its Reducer, control: the node is connected to that neighbour, which can be taught from
// now on. Never leaves the node.
struct NeighbourMet {
  static constexpr std::string_view kName = "neighbour-met";
  std::string node;
};

// Reducer -> Coordinator, control: that member learns more slowly than steps are made, and is not
// taught any more.
struct TooSlow {
  static constexpr std::string_view kName = "too-slow";
  std::uint32_t member = 0;
  std::uint32_t process = 1;  // as in Teach
};

// Reducer -> Reducer of a member that learns, data: the sums of all steps from this one on follow,
// each as RingBucket and RingHeader of the View kLesson. Its replicas are sent the state by the
// teacher's first replica.
struct Lesson {
  static constexpr std::string_view kName = "lesson";
  std::uint64_t next_step = 0;
};
inline constexpr pipeline::ViewId kLesson{0, 1};

// Reducer -> its first replica, data: send that member's replicas the state as it is after the sums
// before this message, as BeginTraining.
struct ShareState {
  static constexpr std::string_view kName = "share-state";
  std::uint32_t member = 0;
  std::uint32_t process = 1;  // as in Teach
};

// Replica -> Coordinator, control: it was taught a state, and has since found `steps` headers of
// taught steps that have the hash of its own state. It says so when it has the state (0 steps),
// again after kProvenSteps, and once more when it enters its first View.
struct Learned {
  static constexpr std::string_view kName = "learned";
  std::uint32_t replica = 0;
  std::uint64_t steps = 0;
  // It has entered its first View, and lacks nothing any more of what it was taught.
  bool complete = false;
};
inline constexpr std::uint64_t kProvenSteps = 2;

// Replica -> Coordinator, control, now and then: how long it took for the micro-batches of some
// whole iterations, all slots of each, waiting for their events included, since it last told one.
// Passed on to the Provisioner.
struct Pace {
  static constexpr std::string_view kName = "pace";
  std::uint32_t replica = 0;
  std::uint64_t iteration = 0;      // the next one
  std::uint64_t micro_batches = 0;  // 0: its View has none for it from the present iteration on
  double seconds = 0.0;
};

// Replica -> its Loader, control: send the missing micro-batches at once, and then those that are
// the replica's in the View, from `iteration` on. This replaces every earlier feed.
struct Feed {
  static constexpr std::string_view kName = "feed";
  struct Missing {
    std::uint64_t iteration = 0;
    std::vector<std::uint32_t> micro_batches;
    bool operator==(const Missing&) const = default;
  };
  std::uint32_t replica = 0;
  std::uint32_t number = 0;  // counts the replica's feeds
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
  std::uint32_t feed = 0;     // the number of its feed
  std::uint32_t replica = 0;  // the one that it is for
};

// Loader -> Replica, data: the run has so many iterations. The first message of every feed.
struct EndOfData {
  static constexpr std::string_view kName = "end-of-data";
  std::uint64_t iterations = 0;
};

// The worker that a bucket or header is of, whose step its site makes alone (actors/site_rings.h);
// this one: it is of the step of all members.
inline constexpr std::uint32_t kOfAll = UINT32_MAX;

// Replica -> Reducer and back, data: elements [begin, end) of a step's contribution vector.
// Payload: an element of this kind each (pipeline/steps/sum_layout.h); the replica's part on the
// way there, the sum over all replicas of the run on the way back.
struct BucketMessage {
  static constexpr std::string_view kName = "bucket";
  std::uint64_t step = 0;
  std::uint32_t attempt = 0;
  std::uint32_t bucket = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  pipeline::SumKind kind = pipeline::SumKind::kInt64;
  pipeline::ViewId view{};  // in which the part is computed; not used on the way back
  std::uint32_t worker = kOfAll;
};

// Replica -> Reducer and back, data: follows the last bucket of a step's attempt.
struct HeaderMessage {
  static constexpr std::string_view kName = "header";
  pipeline::StepHeader header;
  pipeline::ViewId view{};  // as of a bucket
  std::uint32_t worker = kOfAll;
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(header.exponents.size() * sizeof(std::int16_t));
  }
};

// Reducer -> next Reducer of the ring, data: a bucket on its way round. Payload: integers, or
// floats in the format. A bucket of the step before the View's first is summed, and goes from a
// member that has the sums to one that lacks them.
struct RingBucket {
  static constexpr std::string_view kName = "ring-bucket";
  BucketMessage bucket;
  bool summed = false;  // over all members; else over those from the bucket's beginning to here
  std::optional<pipeline::ReductionFormat> format;  // of floats
};

// Reducer -> next Reducer of the ring, data: the header on its way round. A header of the step
// before the View's first goes the way of the buckets, behind them.
struct RingHeader {
  static constexpr std::string_view kName = "ring-header";
  pipeline::StepHeader header;
  bool combined = false;  // over all members; else over those from its beginning to here
  pipeline::ViewId view{};
  std::uint32_t worker = kOfAll;
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
// all steps from this one on again, as far as you remember them.
struct TellSteps {
  static constexpr std::string_view kName = "tell-steps";
  std::uint64_t from = 0;
};

// Leader's replica -> Monitor, metrics: a committed step. A new leader tells the newest ones again.
struct StepMetrics : telemetry::StepNumbers {
  static constexpr std::string_view kName = "step-metrics";
  std::uint64_t step = 0;
  std::uint32_t slot = 0;
  std::vector<double> losses;   // in the order of GanDescription::losses
  runtime::Hash128 state_hash;  // before the step
  bool again = false;           // it was told before, or is the next one after such steps
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

// Member -> Coordinator, control: the node has lost its connection to another member.
struct NeighbourLost {
  static constexpr std::string_view kName = "neighbour-lost";
  std::string node;
  runtime::Error error;
};

// Member -> Coordinator, control: the node was told to end, and waits for its release.
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

// Member -> Coordinator, control: an actor of its node has failed, so the run cannot go on.
struct MemberFailed {
  static constexpr std::string_view kName = "member-failed";
  std::string actor;  // it will report nothing any more
  runtime::Error error;
};

// Coordinator -> Member, control: the run is over, or the others go on without it.
struct Release {
  static constexpr std::string_view kName = "release";
  std::string why;  // for people; "" when the member wanted it itself, or the run is over
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
  // This message overtakes snapshots of the leader that come before it. The Validator waits until
  // so many have come.
  std::uint64_t snapshots = 0;
  std::string leader;
};

// Checkpointer, Validator, Monitor -> Coordinator, control.
struct LastStateDone {
  static constexpr std::string_view kName = "last-state-done";
  std::optional<runtime::Error> error;
  // From the Checkpointer: the newest that is saved, which may be newer than the one it was told.
  StatePointer state = nullptr;
};

// Validator -> Coordinator, control: how good the state's generator is.
struct ValidationResult {
  static constexpr std::string_view kName = "validation-result";
  StatePointer state;
  // The figure that actors.validator.best names, and how far it is from its ideal, mostly what
  // equal samples have: lower is better; infinite where the state does not have it.
  std::string figure;
  double distance = 0.0;
  double stop_distance = 0.0;  // the same of the figure that train.stop reads, if it reads one
  std::string table;           // text, for people
  std::string json;            // the same, for machines
};

// Coordinator -> Checkpointer, control: keep this state if it is the best so far.
struct ValidatedState {
  static constexpr std::string_view kName = "validated-state";
  StatePointer state;
  std::string figure;
  double distance = 0.0;  // as the ValidationResult has it
};

// Coordinator -> Validator, control: another process may come as the member of these replicas,
// whose snapshots count from 0. Never leaves the node.
struct ReplicasRenewed {
  static constexpr std::string_view kName = "replicas-renewed";
  std::vector<std::string> replicas;
};

// Leading replica -> Validator, control: how far from its ideal is the figure that train.stop
// reads, of the state before `step`? The Validator, to which the state goes as well, answers that
// replica when it has judged it.
struct FigureAsked {
  static constexpr std::string_view kName = "figure-asked";
  std::uint64_t step = 0;
};
struct FigureFound {
  static constexpr std::string_view kName = "figure-found";
  std::uint64_t step = 0;
  double distance = 0.0;  // infinite where the showers do not have it
};

// Any -> Monitor, metrics: something that gets a line: a checkpoint was written, a validation.
struct EventMetrics {
  static constexpr std::string_view kName = "event-metrics";
  telemetry::Record record;  // a checkpoint, a validation or a View; without its time
};

// Validator -> Monitor, metrics: a report for people of the state before `step`. Both actors are on
// one node, so the message never leaves it.
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

// Any -> Monitor, metrics: numbers in the order in which they arose, kMostSamples at most. They are
// values of the series SENDER/NAME. Nobody waits for them, and what is dropped on the way changes
// nothing but curves.
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
  std::uint64_t request = 0;   // the request that wants it; 0: nothing more is wanted
  runtime::TimePoint sent{0};  // on the head's clock
  Wants wants = Wants::kNothing;
};

// Member -> Monitor, metrics: the answer. At most one payload with what is wanted besides, if the
// node can tell it: what its actors did lately, as telemetry::pack_actors() writes it, or a text
// that says who waits for whom.
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

// Member -> its first replica, control: which state do you have? The answer has the last committed
// one, or null when the replica has not begun. Neither leaves the node.
struct TellState {
  static constexpr std::string_view kName = "tell-state";
};
struct OwnState {
  static constexpr std::string_view kName = "own-state";
  StatePointer state;
};

inline constexpr const char* kPoolRole = "pool";

// Coordinator -> Monitor, Provisioner, control: a node has come, has left or is lost. Its host is
// "" and its pid 0 when they were told before. Provisioner -> Monitor: the same of a pool's node,
// whose role is kPoolRole.
struct NodeChange : telemetry::NodeFacts {
  static constexpr std::string_view kName = "node-change";
};

// Provisioner -> Coordinator, control: these members shall leave, since their machine is to be
// given back. The Coordinator answers for each that cannot.
struct LetGo {
  static constexpr std::string_view kName = "let-go";
  std::vector<std::string> nodes;
  std::string why;  // for people
};
struct Kept {
  static constexpr std::string_view kName = "kept";
  std::string node;
  std::string why;
  bool for_good = false;  // it is the last one; else it may be asked again
};

// Coordinator -> Checkpointer, control, which passes it on to the Monitor behind the last metrics:
// nothing more will come; finish writing and answer the Coordinator with LastStateDone.
struct FinishMetrics {
  static constexpr std::string_view kName = "finish-metrics";
  // The leader has told the Monitor all steps before this one; some may still be on their way.
  std::uint64_t told_until = 0;
  // The newest committed step. The leader may have been stopped before that, or may be lost.
  std::optional<StepMetrics> newest;
};

}  // namespace troupe::actors
