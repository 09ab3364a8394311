#pragma once

// Reads the small files of a run's folder. A text that is given may be anything.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/fields.h"
#include "runtime/base/utc_time.h"
#include "telemetry/history.h"

namespace troupe::telemetry {

// How a run ended.
struct RunEnd {
  std::string state;  // "ended", "failed", "stopped"
  std::string error;
};
// Nothing: this is no summary.json.
std::optional<RunEnd> read_run_end(std::string_view summary_json);

// A node as nodes.json of a run lists it.
struct ListedNode {
  NodeFacts facts;
  std::chrono::sys_time<std::chrono::milliseconds> since{};  // of its state
};

template <class Archive>
void fields(Archive& archive, runtime::Like<ListedNode> auto& node) {
  archive.text("name", node.facts.name, kAnyLength);
  archive.text("host", node.facts.host, kAnyLength);
  archive.number("pid", node.facts.pid, INT32_MAX);
  archive.text("role", node.facts.role, kAnyLength);
  archive.text("state", node.facts.state, kAnyLength);
  archive.converted(
      "since", node.since, kAnyLength, [](const auto& time) { return runtime::utc_text(time); },
      runtime::read_utc);
  archive.last("device", node.facts.device);
  archive.last("cause", node.facts.cause);
}

inline const char* fault_of(const ListedNode& node) {
  return node.facts.name.empty() ? "a node without a name" : nullptr;
}

// Every node of nodes.json that has a name.
std::vector<ListedNode> read_nodes_file(std::string_view nodes_json);

// A line of log.txt, "2025-01-31 12:34:56.789 warning loader: text" in local time. A line that does
// not begin so continues the one before: its level is empty and its time is 0.
LogLine read_log_line(std::string_view line);

// Whether /proc/locks tells of a process that holds the lock on a file with this inode.
bool is_locked(std::string_view proc_locks, std::uint64_t inode);

// The file in RUN/showers of a step that was validated, "step-000000000088.json". It holds what
// docs/watching.md calls "showers".
std::string showers_file_name(std::uint64_t step);
// Its content. kData: there is none, it cannot be read, or it is larger than any that a run writes.
runtime::Result<std::string> read_showers(const std::string& run_folder, std::uint64_t step);

}  // namespace troupe::telemetry
