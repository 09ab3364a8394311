#pragma once

// The log of a run: standard error, RUN/log.txt, and the lines that its page shows.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/folder/run_folder.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "telemetry/history.h"

namespace troupe::launch {

// "debug", "info", "warning", "error".
std::vector<std::string> log_level_words();
std::string log_level_word(runtime::LogLevel level);
// Nothing for any other text.
std::optional<runtime::LogLevel> parse_log_level(std::string_view text);

// Lines below `level` go nowhere. kData: the file cannot be opened.
runtime::Result<runtime::Log> open_run_log(const RunFolder& folder,
                                           std::shared_ptr<telemetry::History> history,
                                           runtime::LogLevel level = runtime::LogLevel::kInfo);

}  // namespace troupe::launch
