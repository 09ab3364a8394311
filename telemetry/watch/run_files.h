#pragma once

// Reads the small files of a run's folder, given as text that may be anything.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/history.h"
#include "telemetry/listed_node.h"

namespace troupe::telemetry {

// How a run ended.
struct RunEnd {
  std::string state;  // "ended", "failed", "stopped"
  std::string error;
};
// Nothing: this is no summary.json.
std::optional<RunEnd> read_run_end(std::string_view summary_json);

// Every node of nodes.json that has a name.
std::vector<ListedNode> read_nodes_file(std::string_view nodes_json);

// A line of log.txt, "2025-01-31 12:34:56.789 warning loader: text" in local time. A line that does
// not begin so continues the one before: its level is empty and its time is 0.
LogLine read_log_line(std::string_view line);

// Whether /proc/locks tells of a process that holds the lock on a file with this inode.
bool is_locked(std::string_view proc_locks, std::uint64_t inode);

}  // namespace troupe::telemetry
