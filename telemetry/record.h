#pragma once

// A run tells of itself in records while it trains. Each is a line of metrics.jsonl. Curves, pages
// and TensorBoard's events are made of records, at once or when the folder is read later.
// docs/watching.md lists kinds and fields.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/fields.h"

namespace troupe::telemetry {

// A number worth a curve: "loss/d_real/generation", "seconds/compute", "validation/total".
struct RecordPoint {
  std::string series;
  double value = 0.0;
};

// A run says this of itself when it begins or goes on.
struct RunFacts {
  std::string name;   // of the topology
  std::string model;  // "gan3d_25"
  std::string version;
  std::vector<std::string> schedule;                   // "d_real", "d_fake", "g", "g"
  std::vector<std::pair<std::string, double>> losses;  // names and weights
  std::uint64_t iterations = 0;                        // of the whole run
  std::uint64_t iterations_per_epoch = 0;
  std::uint64_t micro_batches = 0, micro_batch = 0;  // M and b
  double price_per_node_hour = 0.0;                  // 0: none was told
};

// A node has changed its state, or was not known before.
struct NodeFacts {
  static constexpr std::string_view kKind = "node";
  std::string name = {}, host = {};
  std::string role = "member";  // or "all", "head", "pool": a machine that members are started on
  std::uint64_t pid = 0;
  // "joining", "running", "ended", "dead"; of a pool's node also "asked", "queued", "starting",
  // "learning", "draining", "stopping"
  std::string state = {};
  std::string cause = {};    // of the last two
  std::string address = {};  // as the head sees it
  std::string device = {};   // that it computes on, as soon as it has told of it
};

// The first record of a session.
struct RunRecord {
  static constexpr std::string_view kKind = "run";
  RunFacts facts;
  NodeFacts node{.state = "running"};  // the one that writes this
};

// The workers whose turn a step was, and those whose turn the next one is.
struct TurnFacts {
  std::vector<std::uint32_t> workers, next;
};

// A step in numbers, as the message of a replica and the line of metrics.jsonl both have them.
struct StepNumbers {
  std::uint64_t epoch = 0, iteration = 0;
  std::uint32_t attempts = 1;
  std::uint64_t events = 0;
  std::uint64_t event_sum = 0;      // of the step's header: which events they were
  std::optional<TurnFacts> turn{};  // where workers take turns
  // How the time since the step before was spent. These add up to it.
  double load_seconds = 0.0;     // waiting for micro-batches
  double compute_seconds = 0.0;  // computing, this step or ahead of it
  double reduce_seconds = 0.0;   // waiting for the sum with nothing to compute
  double apply_seconds = 0.0;
};

struct StepFacts : StepNumbers {
  static constexpr std::string_view kKind = "step";
  std::string slot;
  std::vector<std::pair<std::string, double>> losses;  // by name
  std::string state_hash;                              // before the step
};

// The members that make the steps from `first_step` on.
struct ViewFacts {
  static constexpr std::string_view kKind = "view";
  std::string id = {};  // "1.2"
  std::uint64_t first_step = 0;
  std::vector<std::string> members = {};  // names of its nodes, in the order of the ring
  std::vector<std::string> joined = {};   // names of those that are new
  std::vector<std::string> causes = {};   // why others are not among them any more
  std::string shared_anew = {};           // why micro-batches are; "" when they are not
  double halted_seconds = 0.0;            // from the first of these until it was told
  // How many micro-batches of the iteration of `first_step` other replicas compute from that step
  // on, because the replicas that did are lost or have left. Their work for the steps under way was
  // done again, and nothing else was.
  std::uint32_t taken_over = 0;
  std::uint64_t kept_bytes = 0;       // the most of any member when it halted
  std::optional<std::string> time{};  // of day, when it was told
};

struct CheckpointFacts {
  static constexpr std::string_view kKind = "checkpoint";
  std::string file;  // its name
  std::uint64_t bytes = 0;
  std::string state_hash;
};

struct ValidationFacts {
  static constexpr std::string_view kKind = "validation";
  std::string json = "null";  // an object: the table of model/physics
};

// The losses of events that a state was not trained on, as steps of a slot have them.
struct TestLossFacts {
  static constexpr std::string_view kKind = "test_losses";
  std::string slot;  // "test_d_real"
  std::uint64_t events = 0;
  std::vector<std::pair<std::string, double>> losses;  // by name
};

struct ShowersFacts {
  static constexpr std::string_view kKind = "showers";
  std::string file;  // its path in the run's folder
};

// The numbers of one series since the record before.
struct SampleFigures {
  std::uint64_t count = 0;
  double mean = 0.0, low = 0.0, high = 0.0, last = 0.0;
};

// What a run has got from one of its pools, and what that has cost so far.
struct PoolBill {
  std::string name = {};
  double price_per_node_hour = 0.0;
  std::uint32_t workers = 1;              // of a node
  std::uint64_t wanted = 0, running = 0;  // nodes
  double node_hours = 0.0, cost = 0.0;
  double iterations = 0.0;  // contributed, in shares of micro-batches
  double speed = 0.0;       // micro-batches of an iteration a worker makes per second; 0: not known
};

// A run with pools tells this now and then, and whenever other nodes are wanted.
struct BillFacts {
  static constexpr std::string_view kKind = "bill";
  std::vector<PoolBill> pools = {};
  double seconds = 0.0;  // since the run began, pauses included
  double cost = 0.0;     // of all pools, so far
  std::optional<double> cost_per_epoch = {};
  double other_iterations = 0.0;  // that workers of no pool have contributed
  double other_speed = 0.0;       // of these
  // As it looks now: seconds until the run ends, and what its pools will have cost. None: not
  // known.
  std::optional<double> seconds_left = {}, cost_at_end = {};
  // As it looked at first: seconds of the whole run, and the same cost.
  std::optional<double> first_seconds = {}, first_cost = {};
  std::string decision = {};  // other nodes are wanted, and why; "": they are those from before
};

struct SampleFacts {
  static constexpr std::string_view kKind = "samples";
  std::vector<std::pair<std::string, SampleFigures>> values;  // by series
};

// std::monostate: the kind is not known here.
using RecordBody =
    std::variant<std::monostate, RunRecord, StepFacts, CheckpointFacts, ValidationFacts, ViewFacts,
                 NodeFacts, ShowersFacts, SampleFacts, BillFacts, TestLossFacts>;

struct Record {
  double time = 0.0;       // seconds since 1970; 0: not told
  std::uint64_t step = 0;  // steps committed when it was made; in a StepFacts: its number
  RecordBody body{};
};

// "run", "step" and so on; "" when the kind is not known here.
std::string_view kind_of(const Record& record);
std::vector<RecordPoint> points_of(const Record& record);
// The text of the mark across the curves: "member.1 was lost: killed by signal 9". "": none.
std::string mark_of(const Record& record);
// The rows of a validation's table, as a JSON list; "": there are none.
std::string rows_of(const Record& record);

// The record as a line of metrics.jsonl, without its end. Its kind is known.
std::string line_of(const Record& record);
// kData: this is no JSON object with "kind" and "step". A field whose value is of another kind is
// taken as absent.
runtime::Result<Record> read_record(std::string_view line);

// The fields of records, as docs/watching.md lists them; see runtime/base/fields.h.

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
  archive.text("role", node.role, kAnyLength);
  archive.number("pid", node.pid);
  archive.text("address", node.address, kAnyLength);
  archive.text("cause", node.cause, kAnyLength);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<TurnFacts> auto& turn) {
  archive.list("workers", turn.workers, kAnyLength);
  archive.list("next", turn.next, kAnyLength);
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
  archive.last("turn", step.turn);
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
void fields(Archive& archive, runtime::Like<TestLossFacts> auto& test) {
  archive.text("slot", test.slot, kAnyLength);
  archive.number("events", test.events);
  archive.map("losses", test.losses, [](auto& item, auto& loss) { item.real("", loss); });
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

template <class Archive>
void fields(Archive& archive, runtime::Like<PoolBill> auto& pool) {
  archive.text("name", pool.name, kAnyLength);
  archive.real("price_per_node_hour", pool.price_per_node_hour);
  archive.number("workers", pool.workers);
  archive.number("wanted", pool.wanted);
  archive.number("running", pool.running);
  archive.real("node_hours", pool.node_hours);
  archive.real("cost", pool.cost);
  archive.real("iterations", pool.iterations);
  archive.real("speed", pool.speed);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<BillFacts> auto& bill) {
  archive.list("pools", bill.pools, kAnyLength);
  archive.real("seconds", bill.seconds);
  archive.real("cost", bill.cost);
  archive.perhaps("cost_per_epoch", bill.cost_per_epoch);
  archive.real("other_iterations", bill.other_iterations);
  archive.real("other_speed", bill.other_speed);
  archive.perhaps("seconds_left", bill.seconds_left);
  archive.perhaps("cost_at_end", bill.cost_at_end);
  archive.perhaps("first_seconds", bill.first_seconds);
  archive.perhaps("first_cost", bill.first_cost);
  archive.text("decision", bill.decision, kAnyLength);
}

}  // namespace troupe::telemetry
