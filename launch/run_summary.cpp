#include "launch/run_summary.h"

#include <sys/resource.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/training_state.h"
#include "runtime/base/json_text.h"

namespace troupe::launch {

using runtime::json_string;

namespace {

// Of this process since it began, making showers included.
long peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // Linux counts KiB
}

}  // namespace

std::string summary_json(const actors::RunOutcome& outcome, const HeadHistory& history,
                         std::size_t slots, const std::vector<runtime::PeerStats>& peers,
                         const std::optional<runtime::Error>& error) {
  std::int64_t bytes_on_wire = 0;
  for (const runtime::PeerStats& peer : peers) {
    bytes_on_wire += peer.bytes_sent + peer.bytes_received;
  }
  const std::string problem = error ? json_string(error->message) : "null";
  if (outcome.state == nullptr) {
    return fmt::format(R"({{"state_hash":null,"iterations":0,"error":{}}})", problem);
  }
  const pipeline::TrainingState& state = *outcome.state;
  const double rate =
      outcome.seconds > 0.0 ? static_cast<double>(outcome.timed_events) / outcome.seconds : 0.0;
  std::size_t failures = history.failures;
  std::vector<std::string> views = history.views;
  for (const actors::RunOutcome::ViewChange& change : outcome.changes) {
    failures += change.causes.size();
    views.push_back(actors::view_json(change));
  }
  return fmt::format(
      R"({{"state_hash":"{}","iterations":{},"epochs":{},"steps":{},"events_per_second":{:.6g},)"
      R"("peak_memory_bytes":{},)"
      R"("ledger":{{"events":{},"sum":"{:016x}"}},"bytes_on_wire":{},"failures_survived":{},)"
      R"("views":[{}],"stopped":{},"error":{},"validation":{}}})",
      pipeline::hash_of_state(state).text(), state.iteration, state.epoch, state.step(slots), rate,
      peak_memory_bytes(), state.ledger_events, state.ledger_sum, bytes_on_wire, failures,
      fmt::join(views, ","), outcome.stopped, problem,
      outcome.validation ? outcome.validation->json : "null");
}

}  // namespace troupe::launch
