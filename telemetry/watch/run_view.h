#pragma once

// What a follower of a run knows of it: the JSON of docs/watching.md, put together again.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/history.h"
#include "telemetry/history_news.h"

namespace troupe::telemetry {

struct RunView {
  std::uint64_t version = 0;
  RunFacts facts;
  RunProgress progress;
  std::map<std::string, std::vector<double>> curves;  // means by series
  std::vector<NodeState> nodes;
  std::deque<Mark> marks;   // the newest
  std::deque<LogLine> log;  // likewise

  // "ended", "failed", "stopped": nothing more will come.
  bool is_over() const;
  // History or update; whatever the text is, only what can be understood of it is taken. False: it
  // is none.
  bool take(std::string_view json);

  static constexpr std::size_t kNotes = 100;         // marks, and lines of log
  static constexpr std::size_t kMostPoints = 65536;  // of a curve
  static constexpr std::size_t kMostCurves = 4096;
};

}  // namespace troupe::telemetry
