#pragma once

// The fields of records, as docs/watching.md lists them; see runtime/base/fields.h.

#include <cstddef>
#include <cstdint>

#include "runtime/base/fields.h"
#include "telemetry/record.h"

namespace troupe::telemetry {

inline constexpr std::size_t kAnyLength = SIZE_MAX;

template <class Archive>
void fields(Archive& archive, runtime::Like<RunFacts> auto& facts) {
  archive.text("name", facts.name, kAnyLength);
  archive.text("model", facts.model, kAnyLength);
  archive.text("version", facts.version, kAnyLength);
  archive.list("schedule", facts.schedule, kAnyLength);
  archive.list("losses", facts.losses, kAnyLength, [](auto& item, auto& loss) {
    item.tuple("", [&](auto& values) {
      values.text("", loss.first, kAnyLength);
      values.real("", loss.second);
    });
  });
  archive.number("iterations", facts.iterations);
  archive.number("iterations_per_epoch", facts.iterations_per_epoch);
  archive.number("micro_batches", facts.micro_batches);
  archive.number("micro_batch", facts.micro_batch);
  archive.real("price_per_node_hour", facts.price_per_node_hour);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<RunRecord> auto& run) {
  archive.inlined(run.facts);
  archive.text("node", run.node.name, kAnyLength);
  archive.text("host", run.node.host, kAnyLength);
  archive.text("role", run.node.role, kAnyLength);
  archive.number("pid", run.node.pid);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<NodeFacts> auto& node) {
  archive.text("node", node.name, kAnyLength);
  archive.text("state", node.state, kAnyLength);
  archive.text("host", node.host, kAnyLength);
  archive.number("pid", node.pid);
  archive.text("address", node.address, kAnyLength);
  archive.text("cause", node.cause, kAnyLength);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<StepFacts> auto& step) {
  archive.number("epoch", step.epoch);
  archive.number("iteration", step.iteration);
  archive.text("slot", step.slot, kAnyLength);
  archive.number("attempts", step.attempts);
  archive.number("events", step.events);
  archive.bits("event_sum", step.event_sum);
  archive.map("losses", step.losses, [](auto& item, auto& loss) { item.real("", loss); });
  archive.group("seconds", [&](auto& seconds) {
    seconds.real("load", step.load_seconds);
    seconds.real("compute", step.compute_seconds);
    seconds.real("reduce", step.reduce_seconds);
    seconds.real("apply", step.apply_seconds);
  });
  archive.text("state_hash", step.state_hash, kAnyLength);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<ViewFacts> auto& view) {
  archive.text("view", view.id, kAnyLength);
  archive.number("first_step", view.first_step);
  archive.list("members", view.members, kAnyLength);
  archive.list("joined", view.joined, kAnyLength);
  archive.list("causes", view.causes, kAnyLength);
  archive.text("shared_anew", view.shared_anew, kAnyLength);
  archive.real("halted_seconds", view.halted_seconds);
  archive.number("micro_batches_taken_over", view.taken_over);
  archive.number("kept_bytes", view.kept_bytes);
  archive.perhaps("time", view.time);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<CheckpointFacts> auto& checkpoint) {
  archive.text("file", checkpoint.file, kAnyLength);
  archive.number("bytes", checkpoint.bytes);
  archive.text("state_hash", checkpoint.state_hash, kAnyLength);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<ShowersFacts> auto& showers) {
  archive.text("file", showers.file, kAnyLength);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<SampleFacts> auto& samples) {
  archive.map("values", samples.values, [](auto& item, auto& figures) {
    item.tuple("", [&](auto& values) {
      values.number("", figures.count);
      values.real("", figures.mean);
      values.real("", figures.low);
      values.real("", figures.high);
      values.real("", figures.last);
    });
  });
}

}  // namespace troupe::telemetry
