#include "launch/folder/run_log.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/base/clock.h"

namespace troupe::launch {
namespace {

using runtime::LogLevel;

// In the order of the levels.
constexpr std::array kWords{"debug", "info", "warning", "error"};

}  // namespace

std::vector<std::string> log_level_words() { return {kWords.begin(), kWords.end()}; }

std::string log_level_word(LogLevel level) { return kWords.at(static_cast<std::size_t>(level)); }

std::optional<LogLevel> parse_log_level(std::string_view text) {
  const auto found = std::find(kWords.begin(), kWords.end(), text);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<LogLevel>(found - kWords.begin());
}

runtime::Result<runtime::Log> open_run_log(const RunFolder& folder,
                                           std::shared_ptr<telemetry::History> history,
                                           LogLevel level) {
  runtime::LogOptions options;
  options.level = level;
  options.file = folder.file(RunFolder::kLog);
  options.also = [history = std::move(history)](LogLevel of_line, std::string_view line) {
    const double now = runtime::seconds_since_1970(runtime::wall_now());
    history->take_log({now, log_level_word(of_line), std::string(line)});
  };
  return runtime::Log::open(options);
}

}  // namespace troupe::launch
