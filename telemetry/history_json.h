#pragma once

// What is new of a run as JSON: "history and update" of docs/watching.md.

#include <optional>
#include <string>
#include <vector>

#include "telemetry/history.h"

namespace troupe::telemetry {

struct Mark {
  std::string kind;
  std::uint64_t step = 0;
  double time = 0.0;
  std::string text;
};

struct Validation {
  std::uint64_t step = 0;
  double time = 0.0;
  std::string rows;  // JSON
};

struct SeriesNews {
  std::string name;
  std::uint64_t width = 1;
  std::size_t from = 0;
  std::vector<SeriesPoint> points;  // the one at `from`, and those behind it
};

// Absent: it has not changed.
struct HistoryNews {
  std::uint64_t version = 0;
  bool whole = false;
  double now = 0.0;
  std::optional<RunFacts> run;
  std::optional<RunProgress> progress;
  std::optional<std::vector<NodeState>> nodes;
  std::optional<std::vector<std::uint64_t>> showers;
  std::vector<SeriesNews> series;
  std::vector<Mark> marks;
  std::vector<Validation> validations;
  std::vector<LogLine> log;
};

// One line.
std::string history_json(const HistoryNews& news);

}  // namespace troupe::telemetry
