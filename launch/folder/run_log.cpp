#include "launch/folder/run_log.h"

#include <array>
#include <string>
#include <utility>

#include "runtime/base/clock.h"

namespace troupe::launch {
namespace {

using runtime::LogLevel;

constexpr std::array kLevels{
    std::pair{LogLevel::kDebug, "debug"}, std::pair{LogLevel::kInfo, "info"},
    std::pair{LogLevel::kWarning, "warning"}, std::pair{LogLevel::kError, "error"}};

}  // namespace

std::vector<std::string> log_level_words() {
  std::vector<std::string> words;
  for (const auto& [level, word] : kLevels) words.emplace_back(word);
  return words;
}

std::string log_level_word(LogLevel level) {
  for (const auto& [each, word] : kLevels) {
    if (each == level) return word;
  }
  return "info";
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  for (const auto& [level, word] : kLevels) {
    if (word == text) return level;
  }
  return std::nullopt;
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
