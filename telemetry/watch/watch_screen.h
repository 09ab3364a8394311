#pragma once

// A run as text for a terminal. It has no escape sequences, not even those that a run may have put
// into its texts.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/history_news.h"

namespace troupe::telemetry {

// All that is known of a run, in at most `rows` lines of at most `columns` characters.
std::vector<std::string> watch_screen(const HistoryNews& run, std::size_t columns,
                                      std::size_t rows);
// The most important of it, in one line.
std::string watch_line(const HistoryNews& run);

// Cuts the text to `columns` characters. Control characters and bytes that are not UTF-8 become
// '?'.
std::string fit(std::string_view text, std::size_t columns);
// The newest values as blocks of eight heights, from the lowest value to the highest.
std::string sparkline(std::span<const double> values, std::size_t columns);
// "47 s", "1:47", "2:03:04", "3 d 4 h".
std::string duration_text(double seconds);
// "512 B", "1.2 GB".
std::string bytes_text(double bytes);

}  // namespace troupe::telemetry
