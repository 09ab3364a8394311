#include "launch/folder/metrics_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "telemetry/record.h"

namespace troupe::launch {
namespace {

using runtime::Result;

constexpr std::streamoff kMostRecalled = std::streamoff{64} << 20;

bool is_of(std::string_view kind, std::string_view line) {
  constexpr std::string_view kBegin = "{\"kind\":\"";
  return line.starts_with(kBegin) && line.substr(kBegin.size()).starts_with(kind) &&
         line.substr(kBegin.size() + kind.size()).starts_with('"');
}

// The step a line belongs to; none for a line that is not whole.
std::optional<std::uint64_t> step_of(std::string_view line) {
  constexpr std::string_view kKey = "\"step\":";
  const std::size_t at = line.find(kKey);
  if (at == std::string_view::npos || !line.ends_with('}')) return std::nullopt;
  std::uint64_t step = 0;
  const char* first = line.data() + at + kKey.size();
  const auto parsed = std::from_chars(first, line.data() + line.size(), step);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return step;
}

}  // namespace

Result<std::string> MetricsFile::text() const {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) return std::string();
  ASSIGN_OR_RETURN(const runtime::Buffer file, disk_.read(path_));
  return std::string(reinterpret_cast<const char*>(file.data()), file.size());
}

// The line of step `step` itself tells of what came after the state, and goes. All else with that
// number, such as the state's validation, stays.
Result<MetricsFile::Cut> MetricsFile::cut(std::uint64_t step) const {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) {
    return Cut{false, step > 0 ? path_ + " is gone, and with it what the run told so far" : ""};
  }
  ASSIGN_OR_RETURN(const std::string old, text());
  Cut result;
  std::string kept;
  std::uint64_t unreadable = 0, steps = 0;
  for (std::string_view rest = old; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const auto found = step_of(line);
    const bool is_step = is_of("step", line);
    const bool of_state = found == step && !is_step;
    if (of_state && is_of("validation", line)) result.validated = true;
    if (of_state || (found && *found < step)) {
      kept.append(line).push_back('\n');
      steps += is_step;
    }
    if (end == std::string_view::npos) break;
    unreadable += !found;
    rest.remove_prefix(end + 1);
  }
  if (unreadable > 0) {
    RETURN_IF_ERROR(disk_.replace(path_ + kUnreadable, std::as_bytes(std::span{old})));
  }
  RETURN_IF_ERROR(disk_.replace(path_, std::as_bytes(std::span{kept})));
  if (unreadable > 0) {
    result.problem = fmt::format(
        "{}: {} lines cannot be read and are left out; the file with them is kept as {}{}", path_,
        unreadable, kName, kUnreadable);
  } else if (steps < step) {
    result.problem = fmt::format("{}: tells of {} of the {} steps so far", path_, steps, step);
  }
  return result;
}

Result<std::optional<std::uint64_t>> MetricsFile::mend() const {
  ASSIGN_OR_RETURN(const std::string old, text());
  const std::string_view whole = std::string_view(old).substr(0, old.rfind('\n') + 1);
  std::optional<std::uint64_t> newest;
  for (std::string_view rest = whole; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (is_of("step", line)) newest = std::max(newest, step_of(line));
  }
  if (whole.size() < old.size()) {
    RETURN_IF_ERROR(disk_.replace(path_, std::as_bytes(std::span{whole})));
  }
  return newest;
}

Result<std::string> MetricsFile::told_checkpoint() const {
  ASSIGN_OR_RETURN(const std::string all, text());
  const std::size_t at = all.rfind(R"({"kind":"checkpoint")");
  if (at == std::string::npos) return std::string();
  return all.substr(at, all.find('\n', at) - at);
}

void MetricsFile::recall(telemetry::History& history) const {
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file.tellg();
  if (bytes <= 0) return;
  file.seekg(std::max<std::streamoff>(bytes - kMostRecalled, 0));
  for (std::string line; std::getline(file, line);) {
    // The first may lack its beginning.
    if (const auto record = telemetry::read_record(line); record.ok()) history.take(*record);
  }
}

}  // namespace troupe::launch
