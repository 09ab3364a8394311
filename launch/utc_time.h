#pragma once

// Times of day for people: in UTC, to the millisecond, "2025-01-31T12:34:56.789Z".

#include <chrono>
#include <string>

namespace troupe::launch {

std::string utc_text(std::chrono::system_clock::time_point time);
// Reads what utc_text wrote; the epoch for any other text.
std::chrono::system_clock::time_point utc_time(const std::string& text);

}  // namespace troupe::launch
