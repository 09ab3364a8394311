#pragma once

// A line of metrics.jsonl, understood: the one way in which a run that is watched while it trains,
// and one whose folder is read later, become curves. docs/watching.md lists kinds and fields.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::telemetry {

// A number worth a curve: "loss/d_real/generation", "seconds/compute", "validation/total".
struct RecordPoint {
  std::string series;
  double value = 0.0;
};

// What a run says of itself when it begins or goes on; a line of kind "run" carries it.
struct RunFacts {
  std::string name;   // of the topology
  std::string model;  // "gan3d_25"
  std::string version;
  std::vector<std::string> schedule;                   // "d_real", "d_fake", "g", "g"
  std::vector<std::pair<std::string, double>> losses;  // names and weights
  std::uint64_t iterations = 0;                        // of the whole run
  std::uint64_t iterations_per_epoch = 0;
  std::uint64_t micro_batches = 0, micro_batch = 0;  // M and b
  double price_per_node_hour = 0.0;                  // 0: none was told
};

// Of a "step".
struct StepFacts {
  std::uint64_t iteration = 0;
  std::string slot;
  std::uint64_t events = 0;
  double seconds = 0.0;  // since the step before
};

// Of a "node", and of the one that writes a "run".
struct NodeFacts {
  std::string name, host, role;  // role: "all", "head", "member"
  std::uint64_t pid = 0;
  std::string state, cause;
};

struct Record {
  std::string kind;        // "run", "step", "checkpoint", "validation", "view", "node", "showers",
                           // "samples"; others are passed on as they are
  double time = 0.0;       // seconds since 1970; 0: not told
  std::uint64_t step = 0;  // steps committed when it was written; of a "step": its number
  std::vector<RecordPoint> points;
  // What people read across the curves: "member.1 was lost: killed by signal 9". "": no such.
  std::string mark;
  std::optional<RunFacts> run;
  std::optional<StepFacts> made;
  std::optional<NodeFacts> node;
  std::string rows;  // of a "validation": JSON, the list of the table's rows
  std::string json;  // the line
};

// kData: not a JSON object with "kind" and "step". Fields of another kind than they should have are
// taken as absent.
runtime::Result<Record> read_record(std::string_view line);

}  // namespace troupe::telemetry
