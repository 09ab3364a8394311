#pragma once

// Times of day as texts, in UTC: "2025-01-31T12:34:56.789Z", or "2025-01-31T12:34:56Z".

#include <chrono>
#include <optional>
#include <string>

namespace troupe::runtime {

// To the millisecond.
std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time);
// To the second.
std::string utc_text(std::chrono::sys_seconds time);
// Reads both forms; nothing for any other text, such as the 31st of a February.
std::optional<std::chrono::sys_time<std::chrono::milliseconds>> read_utc(const std::string& text);

}  // namespace troupe::runtime
