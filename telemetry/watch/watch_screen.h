#pragma once

// A run as text for a terminal: pure, without escape sequences, and without any that a run may have
// put into its texts.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/history_news.h"

namespace troupe::telemetry {

// `run` is all that is known of it.
// In at most `rows` lines of at most `columns` characters.
std::vector<std::string> watch_screen(const HistoryNews& run, std::size_t columns,
                                      std::size_t rows);
// In one line.
std::string watch_line(const HistoryNews& run);

// At most `columns` characters; control characters and what is not UTF-8 become '?'.
std::string fit(std::string_view text, std::size_t columns);
// The newest values, lowest to highest as eight heights of a block.
std::string sparkline(std::span<const double> values, std::size_t columns);
// "47 s", "1:47", "2:03:04", "3 d 4 h".
std::string duration_text(double seconds);
// "512 B", "1.2 GB".
std::string bytes_text(double bytes);

}  // namespace troupe::telemetry
