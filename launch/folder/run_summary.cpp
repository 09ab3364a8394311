#include "launch/folder/run_summary.h"

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/steps/training_state.h"
#include "runtime/base/json_writer.h"
#include "telemetry/record.h"

namespace troupe::launch {

namespace {

// The most of this process since it began, making showers included.
long peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // Linux counts KiB
}

struct Ledger {
  std::uint64_t events = 0, sum = 0;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<Ledger> auto& ledger) {
  archive.number("events", ledger.events);
  archive.bits("sum", ledger.sum);
}

// Absent: not known.
struct Summary {
  std::optional<std::string> state_hash;
  std::optional<std::uint64_t> iterations, epochs, steps;
  std::optional<double> events_per_second;
  std::optional<std::int64_t> peak_memory_bytes;
  std::optional<Ledger> ledger;
  std::optional<std::int64_t> bytes_on_wire;
  std::optional<std::uint64_t> failures_survived;
  std::optional<std::vector<telemetry::ViewFacts>> views;
  std::optional<telemetry::BillFacts> bill;
  std::optional<std::vector<std::string>> nodes_left;
  std::optional<bool> stopped;
  std::optional<std::string> ended_early;
  std::optional<std::string> error;
  int exit_code = 0;
  std::string validation = "null";  // JSON
};

template <class Archive>
void fields(Archive& archive, runtime::Like<Summary> auto& summary) {
  archive.perhaps("state_hash", summary.state_hash);
  archive.perhaps("iterations", summary.iterations);
  archive.perhaps("epochs", summary.epochs);
  archive.perhaps("steps", summary.steps);
  archive.perhaps("events_per_second", summary.events_per_second,
                  [](auto& item, auto& rate) { item.real("", rate, 6); });
  archive.perhaps("peak_memory_bytes", summary.peak_memory_bytes);
  archive.perhaps("ledger", summary.ledger);
  archive.perhaps("bytes_on_wire", summary.bytes_on_wire);
  archive.perhaps("failures_survived", summary.failures_survived);
  archive.perhaps("views", summary.views);
  archive.perhaps("bill", summary.bill);
  archive.perhaps("nodes_left", summary.nodes_left);
  archive.perhaps("stopped", summary.stopped);
  archive.perhaps("ended_early", summary.ended_early);
  archive.perhaps("error", summary.error);
  archive.integer("exit_code", summary.exit_code);
  archive.json("validation", summary.validation);
}

void add_state(const pipeline::TrainingState& state, std::size_t slots, Summary& summary) {
  summary.state_hash = pipeline::hash_of_state(state).text();
  summary.iterations = state.iteration;
  summary.epochs = state.epoch;
  summary.steps = state.step(slots);
  summary.ledger = Ledger{state.ledger_events, state.ledger_sum};
}

}  // namespace

std::string summary_json(const actors::RunOutcome& outcome, const HeadHistory& history,
                         std::size_t slots, const std::vector<runtime::PeerStats>& peers,
                         const std::optional<std::vector<std::string>>& nodes_left,
                         const std::optional<runtime::Error>& error, int exit_code) {
  std::int64_t bytes_on_wire = 0;
  for (const runtime::PeerStats& peer : peers) {
    bytes_on_wire += peer.bytes_sent + peer.bytes_received;
  }
  // Those of the heads before this one come first.
  std::uint64_t failures = history.failures;
  std::vector<telemetry::ViewFacts> views = history.views;
  for (const actors::RunOutcome::ViewChange& change : outcome.changes) {
    failures += change.causes.size();
    views.push_back(change);
  }
  Summary summary;
  if (outcome.state != nullptr) add_state(*outcome.state, slots, summary);
  summary.events_per_second =
      outcome.seconds > 0.0 ? static_cast<double>(outcome.timed_events) / outcome.seconds : 0.0;
  summary.peak_memory_bytes = peak_memory_bytes();
  summary.bytes_on_wire = bytes_on_wire;
  summary.failures_survived = failures;
  summary.views = std::move(views);
  summary.bill = outcome.bill;
  summary.nodes_left = nodes_left;
  summary.stopped = outcome.stopped;
  summary.ended_early = outcome.ended_early;
  if (error) summary.error = error->message;
  summary.exit_code = exit_code;
  if (outcome.validation) summary.validation = outcome.validation->json;
  return runtime::to_json(summary);
}

std::string summary_of_failure(const std::string& error, int exit_code) {
  Summary summary;
  summary.error = error;
  summary.exit_code = exit_code;
  return runtime::to_json(summary);
}

}  // namespace troupe::launch
