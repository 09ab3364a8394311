#include "telemetry/watch/run_files.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/disk.h"
#include "runtime/base/json_reader.h"

namespace troupe::telemetry {
namespace {

using nlohmann::json;

constexpr std::size_t kMostShowersBytes = std::size_t{4} << 20;

// Seconds since 1970 at the local time "2025-01-31 12:34:56.789", as logs have it. 0: the text is
// another. `rest` becomes what follows the time.
double local_seconds(const char* text, const char** rest) {
  std::tm parts{};
  const char* behind = ::strptime(text, "%Y-%m-%d %H:%M:%S", &parts);
  int ms = 0, length = 0;
  if (behind == nullptr || std::sscanf(behind, ".%3d%n", &ms, &length) != 1) return 0.0;
  *rest = behind + length;
  parts.tm_isdst = -1;
  return static_cast<double>(::mktime(&parts)) + 1e-3 * ms;
}

}  // namespace

std::optional<RunEnd> read_run_end(std::string_view summary_json) {
  const json summary = runtime::parse_json(summary_json);
  if (!summary.is_object() || !summary.contains("state_hash")) return std::nullopt;
  std::string error;
  bool stopped = false;
  runtime::JsonReader reader(summary);
  reader.text("error", error, SIZE_MAX);
  reader.flag("stopped", stopped);
  return RunEnd{!error.empty() ? "failed" : stopped ? "stopped" : "ended", error};
}

std::vector<ListedNode> read_nodes_file(std::string_view nodes_json) {
  std::vector<ListedNode> nodes;
  const json list = runtime::parse_json(nodes_json);
  if (!list.is_array()) return nodes;
  for (const json& item : list) {
    if (ListedNode node; runtime::read_object(item, node)) nodes.push_back(std::move(node));
  }
  return nodes;
}

LogLine read_log_line(std::string_view line) {
  const std::string all(line);
  const char* rest = all.c_str();
  const double time = local_seconds(all.c_str(), &rest);
  std::string_view behind(rest);
  if (time == 0.0 || !behind.starts_with(' ')) return {0.0, "", all};
  behind.remove_prefix(1);
  const std::size_t blank = behind.find(' ');
  if (blank == std::string_view::npos) return {0.0, "", all};
  return {time, std::string(behind.substr(0, blank)), std::string(behind.substr(blank + 1))};
}

bool is_locked(std::string_view proc_locks, std::uint64_t inode) {
  // "1: FLOCK  ADVISORY  WRITE 4242 08:01:131074 0 EOF"
  std::istringstream lines{std::string(proc_locks)};
  const std::string ending = fmt::format(":{}", inode);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, kind, strength, access, pid, file;
    words >> number >> kind >> strength >> access >> pid >> file;
    if (kind == "FLOCK" && access == "WRITE" && file.ends_with(ending)) return true;
  }
  return false;
}

std::string showers_file_name(std::uint64_t step) { return fmt::format("step-{:012}.json", step); }

runtime::Result<std::string> read_showers(const std::string& run_folder, std::uint64_t step) {
  using runtime::Error;
  using runtime::ErrorKind;
  const std::string path = fmt::format("{}/showers/{}", run_folder, showers_file_name(step));
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown) && !unknown) {
    return Error{ErrorKind::kData, fmt::format("there are no showers of step {}: \"showers\" of "
                                               "the run's history lists those there are",
                                               step)};
  }
  return runtime::read_file(path, kMostShowersBytes);
}

}  // namespace troupe::telemetry
