#pragma once

// The fields of every body of actors/messages.h that can leave its process, in the order of
// messages.h (runtime/base/fields.h); docs/protocol.md describes them. The receiver checks what
// only it can know, such as which step is next.

#include <cstdint>
#include <functional>
#include <span>

#include "actors/messages.h"
#include "pipeline/steps/state_fields.h"
#include "pipeline/steps/view.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error_fields.h"
#include "runtime/base/fields.h"
#include "runtime/transport/wire_types.h"
#include "telemetry/node_sample.h"

namespace troupe::actors {

using runtime::Like;

// No contribution vector is longer (8 TiB), and none is cut into more buckets (1 TiB of 1 MiB). So
// what a receiver keeps by number stays small, and what it multiplies stays exact.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
inline constexpr std::uint32_t kMostBuckets = 1U << 20;
// No model has more loss terms.
inline constexpr std::size_t kMostLosses = 256;
// The most iterations that can be under way when a View begins.
inline constexpr std::size_t kMostIncomplete = 4;
inline constexpr std::size_t kMostReason = 4096;

void fields(auto& archive, Like<BeginTraining> auto& body) {
  archive.number("process", body.process);
  archive.object("state", body.state);
}

void fields(auto& archive, Like<Halt> auto& body) {
  archive.inlined(body.change);
  archive.flag("planned", body.planned);
}

void fields(auto& archive, Like<Halted> auto& body) {
  archive.object("change", body.change);
  archive.number("next_step", body.next_step);
  archive.number("unbegun", body.unbegun);
  archive.number("kept_bytes", body.kept_bytes);
  archive.last("view", body.view);
}

void fields(auto& archive, Like<ViewMessage> auto& body) { archive.shared("view", body.view); }

void fields(auto& archive, Like<Entered> auto& body) { archive.inlined(body.view); }

void fields(auto& archive, Like<Teach> auto& body) {
  archive.number("member", body.member);
  archive.flag("begins", body.begins);
  archive.number("process", body.process);
}

void fields(auto& archive, Like<TooSlow> auto& body) {
  archive.number("member", body.member);
  archive.number("process", body.process);
}

void fields(auto& archive, Like<Lesson> auto& body) { archive.number("next_step", body.next_step); }

void fields(auto& archive, Like<Learned> auto& body) {
  archive.number("replica", body.replica);
  archive.number("steps", body.steps);
  archive.flag("complete", body.complete);
}

void fields(auto& archive, Like<Pace> auto& body) {
  archive.number("replica", body.replica);
  archive.number("iteration", body.iteration);
  archive.number("micro_batches", body.micro_batches);
  archive.real("seconds", body.seconds);
}

void fields(auto& archive, Like<Feed::Missing> auto& missing) {
  archive.number("iteration", missing.iteration);
  archive.list("micro_batches", missing.micro_batches, pipeline::kMostMicroBatches);
}

// The receiver checks whether it knows the View and whether the micro-batches exist.
void fields(auto& archive, Like<Feed> auto& body) {
  archive.number("replica", body.replica);
  archive.number("number", body.number);
  archive.shared("view", body.view);
  archive.list("missing", body.missing, kMostIncomplete);
  archive.number("iteration", body.iteration);
}

void fields(auto& archive, Like<BatchMessage> auto& body) {
  archive.number("iteration", body.iteration);
  archive.number("micro_batch", body.micro_batch);
  archive.number("events", body.events);
  archive.number("feed", body.feed);
  archive.number("replica", body.replica);
}

// Sound: three aligned payloads, of whole floats, and of three floats and one id per event.
const char* fault_of(const BatchMessage& body, std::span<const runtime::Buffer> payloads);

void fields(auto& archive, Like<EndOfData> auto& body) {
  archive.number("iterations", body.iterations);
}

void fields(auto& archive, Like<FigureAsked> auto& body) { archive.number("step", body.step); }

void fields(auto& archive, Like<FigureFound> auto& body) {
  archive.number("step", body.step);
  archive.real("distance", body.distance);
}

// Sound: a distance that is a number.
const char* fault_of(const FigureFound& body);

void fields(auto& archive, Like<RingBucket> auto& body) {
  auto& bucket = body.bucket;
  archive.object("view", bucket.view);
  archive.number("step", bucket.step);
  archive.number("attempt", bucket.attempt);
  archive.number("bucket", bucket.bucket, kMostBuckets - 1);
  archive.integer("begin", bucket.begin, 0, kMostElements);
  archive.integer("end", bucket.end, 0, kMostElements);
  archive.choice("kind", bucket.kind, pipeline::SumKind::kInt16);
  archive.flag("summed", body.summed);
  archive.perhaps_choice("format", body.format, pipeline::ReductionFormat::kInt8);
  archive.number("worker", bucket.worker);
}

// Sound: 0 <= begin < end, a format where there are floats, and one payload of so many aligned
// integers, or floats in that format.
const char* fault_of(const RingBucket& body, std::span<const runtime::Buffer> payloads);

void fields(auto& archive, Like<RingHeader> auto& body) {
  auto& header = body.header;
  archive.object("view", body.view);
  archive.number("step", header.step);
  archive.number("attempt", header.attempt, 1);
  archive.list("exponents", header.exponents, SIZE_MAX,
               [](auto& exponents, auto& exponent) { exponents.integer("", exponent); });
  archive.flag("flagged", header.flagged);
  archive.number("non_finite_micro_batch", header.non_finite.micro_batch);
  archive.number("non_finite_tensor", header.non_finite.tensor);
  archive.number("micro_batches", header.micro_batches);
  archive.number("events", header.events);
  archive.number("event_sum", header.event_sum);
  archive.hash("state_minimum", header.state_minimum);
  archive.hash("state_maximum", header.state_maximum);
  archive.hash("check_minimum", header.check_minimum);
  archive.hash("check_maximum", header.check_maximum);
  archive.flag("judged", header.judged);
  archive.real("distance", header.distance);
  archive.flag("stop_requested", header.stop_requested);
  archive.flag("checkpoint_requested", header.checkpoint_requested);
  archive.list("next", header.next, pipeline::kMostWorkersInTurns);
  archive.flag("combined", body.combined);
  archive.number("worker", body.worker);
}

// Sound: exponents that floats can have, and a named tensor that is one of them.
const char* fault_of(const RingHeader& body);

void fields(auto& archive, Like<Snapshot> auto& body) { archive.inlined(body.state); }

void fields(auto& archive, Like<TellSteps> auto& body) { archive.number("from", body.from); }

void fields(auto& archive, Like<StepMetrics> auto& body) {
  archive.number("step", body.step);
  archive.number("epoch", body.epoch);
  archive.number("iteration", body.iteration);
  archive.number("slot", body.slot);
  archive.number("attempts", body.attempts);
  archive.number("events", body.events);
  archive.number("event_sum", body.event_sum);
  archive.perhaps("turn", body.turn);
  archive.list("losses", body.losses, kMostLosses,
               [](auto& losses, auto& loss) { losses.real("", loss); });
  archive.real("load_seconds", body.load_seconds);
  archive.real("compute_seconds", body.compute_seconds);
  archive.real("reduce_seconds", body.reduce_seconds);
  archive.real("apply_seconds", body.apply_seconds);
  archive.hash("state_hash", body.state_hash);
  archive.flag("again", body.again);
}

void fields(auto& archive, Like<ReplicaEnd> auto& body) {
  archive.number("replica", body.replica);
  archive.perhaps("state", body.state);
  archive.perhaps("error", body.error);
  archive.real("seconds", body.seconds);
  archive.number("timed_events", body.timed_events);
  archive.perhaps("last_step", body.last_step);
  archive.number("validations", body.validations);
}

void fields(auto& archive, Like<NeighbourLost> auto& body) {
  archive.text("node", body.node, telemetry::kMostActorName);
  archive.object("error", body.error);
}

void fields(auto&, Like<Leaving> auto&) {}

void fields(auto& archive, Like<Expelled> auto& body) { archive.inlined(body.error); }

void fields(auto&, Like<StopTraining> auto&) {}

void fields(auto& archive, Like<MemberFailed> auto& body) {
  archive.text("actor", body.actor, telemetry::kMostActorName);
  archive.object("error", body.error);
}

void fields(auto& archive, Like<Release> auto& body) {
  archive.prose("why", body.why, kMostReason);
}

void fields(auto&, Like<CheckpointRequest> auto&) {}

void fields(auto& archive, Like<Sample> auto& sample) {
  archive.text("name", sample.name, kMostSampleName);
  archive.real("value", sample.value);
}

// Sound: a name as Sample has it. Any value is.
const char* fault_of(const Sample& sample);

void fields(auto& archive, Like<SampleMetrics> auto& body) {
  archive.list("samples", body.samples, kMostSamples);
}

void fields(auto& archive, Like<Probe> auto& body) {
  archive.number("request", body.request);
  archive.time("sent", body.sent);
  archive.choice("wants", body.wants, Probe::Wants::kWaits);
}

void fields(auto& archive, Like<NodeReport> auto& body) {
  archive.number("request", body.request);
  archive.time("sent", body.sent);
  archive.choice("wants", body.wants, Probe::Wants::kWaits);
  archive.time("answered", body.answered);
  archive.object("sample", body.sample);
}

// Sound: one payload at most, no larger than a report may have.
const char* fault_of(const NodeReport& body, std::span<const runtime::Buffer> payloads);

// Checks that a state that has arrived is one of the model that is trained here. Any thread.
using StateCheck = std::function<runtime::Result<void>(const pipeline::TrainingState& state)>;

// Adds all of the above. A body whose state `check_state` refuses is refused like one that is not
// sound; null: any state is taken.
void add_wire_messages(runtime::WireTypes& types, const StateCheck& check_state = nullptr);

}  // namespace troupe::actors
