#pragma once

// What `troupe watch` shows must fit the terminal and do nothing to it, whatever a run has told.

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "telemetry/watch/watch_screen.h"

namespace troupe::fuzz {

inline void check_line(const std::string& line, std::size_t columns) {
  const auto is_control = [](char one) {
    return static_cast<unsigned char>(one) < 32 || one == '\x7f';
  };
  CHECK(std::none_of(line.begin(), line.end(), is_control), "a control character");
  CHECK(telemetry::fit(line, columns) == line, "a line that does not fit");
}

inline void check_screen(const telemetry::HistoryNews& run) {
  for (const std::size_t columns : {20, 80}) {
    const std::vector<std::string> lines = telemetry::watch_screen(run, columns, 24);
    CHECK(lines.size() <= 24, "too many lines");
    for (const std::string& line : lines) check_line(line, columns);
  }
  check_line(telemetry::watch_line(run), SIZE_MAX);
}

}  // namespace troupe::fuzz
