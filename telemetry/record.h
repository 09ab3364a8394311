#pragma once

// A line of metrics.jsonl, understood: the one way in which a run that is watched while it trains,
// and one whose folder is read later, become curves. docs/watching.md lists kinds and fields.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::telemetry {

// A number worth a curve: "loss/d_real/generation", "seconds/compute", "validation/total".
struct RecordPoint {
  std::string series;
  double value = 0.0;
};

struct Record {
  std::string kind;        // "run", "step", "checkpoint", "validation", "view", "node", "showers",
                           // "samples"; others are passed on as they are
  double time = 0.0;       // seconds since 1970; 0: not told
  std::uint64_t step = 0;  // steps committed when it was written; of a "step": its number
  std::vector<RecordPoint> points;
  // What people read across the curves: "member.1 was lost: killed by signal 9". "": no such.
  std::string mark;
  std::string json;  // the line
};

// kData: not a JSON object with "kind" and "step".
runtime::Result<Record> read_record(std::string_view line);

}  // namespace troupe::telemetry
