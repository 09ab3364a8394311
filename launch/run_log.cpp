#include "launch/run_log.h"

#include <chrono>
#include <string>
#include <utility>

namespace troupe::launch {
namespace {

const char* word(runtime::LogLevel level) {
  switch (level) {
    case runtime::LogLevel::kDebug:
      return "debug";
    case runtime::LogLevel::kInfo:
      return "info";
    case runtime::LogLevel::kWarning:
      return "warning";
    case runtime::LogLevel::kError:
      return "error";
  }
  return "info";
}

}  // namespace

runtime::Result<runtime::Log> open_run_log(const RunFolder& folder,
                                           std::shared_ptr<telemetry::History> history) {
  runtime::LogOptions options;
  options.file = folder.file("log.txt");
  options.also = [history = std::move(history)](runtime::LogLevel level, std::string_view line) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    history->take_log({now.count(), word(level), std::string(line)});
  };
  return runtime::Log::open(options);
}

}  // namespace troupe::launch
