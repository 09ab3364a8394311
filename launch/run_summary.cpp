#include "launch/run_summary.h"

#include <sys/resource.h>

#include <array>
#include <string>
#include <utility>
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

// As JSON texts.
struct Summary {
  std::string state_hash = "null", iterations = "null", epochs = "null", steps = "null";
  std::string events_per_second = "null", peak_memory_bytes = "null", ledger = "null";
  std::string bytes_on_wire = "null", failures_survived = "null", views = "null";
  std::string stopped = "null", error = "null", exit_code = "null", validation = "null";
};

constexpr std::array kFields{std::pair{"state_hash", &Summary::state_hash},
                             std::pair{"iterations", &Summary::iterations},
                             std::pair{"epochs", &Summary::epochs},
                             std::pair{"steps", &Summary::steps},
                             std::pair{"events_per_second", &Summary::events_per_second},
                             std::pair{"peak_memory_bytes", &Summary::peak_memory_bytes},
                             std::pair{"ledger", &Summary::ledger},
                             std::pair{"bytes_on_wire", &Summary::bytes_on_wire},
                             std::pair{"failures_survived", &Summary::failures_survived},
                             std::pair{"views", &Summary::views},
                             std::pair{"stopped", &Summary::stopped},
                             std::pair{"error", &Summary::error},
                             std::pair{"exit_code", &Summary::exit_code},
                             std::pair{"validation", &Summary::validation}};

std::string text(const Summary& summary) {
  std::vector<std::string> members;
  for (const auto& [name, field] : kFields) {
    members.push_back(fmt::format("\"{}\":{}", name, summary.*field));
  }
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

void add_state(const pipeline::TrainingState& state, std::size_t slots, Summary& summary) {
  summary.state_hash = json_string(pipeline::hash_of_state(state).text());
  summary.iterations = std::to_string(state.iteration);
  summary.epochs = std::to_string(state.epoch);
  summary.steps = std::to_string(state.step(slots));
  summary.ledger =
      fmt::format(R"({{"events":{},"sum":"{:016x}"}})", state.ledger_events, state.ledger_sum);
}

}  // namespace

std::string summary_json(const actors::RunOutcome& outcome, const HeadHistory& history,
                         std::size_t slots, const std::vector<runtime::PeerStats>& peers,
                         const std::optional<runtime::Error>& error, int exit_code) {
  std::int64_t bytes_on_wire = 0;
  for (const runtime::PeerStats& peer : peers) {
    bytes_on_wire += peer.bytes_sent + peer.bytes_received;
  }
  std::size_t failures = history.failures;
  std::vector<std::string> views = history.views;
  for (const actors::RunOutcome::ViewChange& change : outcome.changes) {
    failures += change.causes.size();
    views.push_back(actors::view_json(change));
  }
  const double rate =
      outcome.seconds > 0.0 ? static_cast<double>(outcome.timed_events) / outcome.seconds : 0.0;
  Summary summary;
  if (outcome.state != nullptr) add_state(*outcome.state, slots, summary);
  summary.events_per_second = fmt::format("{:.6g}", rate);
  summary.peak_memory_bytes = std::to_string(peak_memory_bytes());
  summary.bytes_on_wire = std::to_string(bytes_on_wire);
  summary.failures_survived = std::to_string(failures);
  summary.views = fmt::format("[{}]", fmt::join(views, ","));
  summary.stopped = outcome.stopped ? "true" : "false";
  if (error) summary.error = json_string(error->message);
  summary.exit_code = std::to_string(exit_code);
  if (outcome.validation) summary.validation = outcome.validation->json;
  return text(summary);
}

std::string summary_of_failure(const std::string& error, int exit_code) {
  Summary summary;
  summary.error = json_string(error);
  summary.exit_code = std::to_string(exit_code);
  return text(summary);
}

}  // namespace troupe::launch
