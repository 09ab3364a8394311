#pragma once

// What the small files of a run's folder say, as text: pure, so that anything may stand there.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/history.h"
#include "telemetry/listed_node.h"

namespace troupe::telemetry {

// How a run ended, by its summary.json.
struct RunEnd {
  std::string state;  // "ended", "failed", "stopped"
  std::string error;
};
// Nothing: that is no summary.
std::optional<RunEnd> read_run_end(std::string_view summary_json);

// Every node of nodes.json that has a name.
std::vector<ListedNode> read_nodes_file(std::string_view nodes_json);

// A line of log.txt, "2025-01-31 12:34:56.789 warning loader: text" in local time. One that does
// not begin so goes on with the line before: level and time are empty.
LogLine read_log_line(std::string_view line);

// Whether /proc/locks tells of a process that holds the lock on a file with this inode.
bool is_locked(std::string_view proc_locks, std::uint64_t inode);

}  // namespace troupe::telemetry
