#pragma once

// The content of a file or a glob of files, for `troupe data info` to print.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/dataset_options.h"
#include "pipeline/data/progress.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct DatasetEntryInfo {
  std::string name;  // path inside the file
  std::vector<std::uint64_t> shape;
  std::string type;                  // "float32", "float64", "int32", "other", ...
  std::vector<std::uint64_t> chunk;  // empty: one contiguous piece
  std::vector<std::string> filters;  // in the order applied when writing: "shuffle", "gzip 4", ...
  std::uint64_t stored_bytes = 0;
};

struct FileInfo {
  std::string path;
  std::uint64_t bytes = 0;
  std::optional<DataSchema> schema;  // kLcdFixed or kLcdAngle, if it is one
  std::uint64_t events = 0;          // stored ones; 0 where there is no schema
  std::vector<DatasetEntryInfo> datasets;
  std::vector<std::pair<std::string, std::string>> attributes;  // of the root, as text
};

// Smallest, largest and mean value.
struct Range {
  double min = 0;
  double max = 0;
  double mean = 0;
};

struct DatasetInfo {
  std::vector<FileInfo> files;
  std::optional<DataSchema> schema;  // if all files have the same
  std::array<std::uint64_t, 3> shape{};
  std::uint64_t events = 0;
  std::uint64_t bad_events = 0;  // not counted in the ranges below
  std::vector<std::string> bad_event_examples;
  Range energy_gev;
  Range theta_rad;
  Range ecal;                  // sum of an event's cells, stored units
  Range occupied_cells;        // cells above 0 of an event
  double ecal_per_energy = 0;  // mean ecal / mean energy, stored units per GeV
  std::vector<std::string> notes;
  // For each file without a schema: the datasets that were looked for, and those that it has.
  std::vector<std::string> not_understood;
};

// The schema of the files, by the first of them. Errors (kData) as describe_dataset()'s, and that
// it has none.
runtime::Result<DataSchema> find_schema(const std::vector<std::string>& paths);

// `paths` as in DatasetOptions. Reads every event of files with a known schema, on the team.
// Errors (kData): no such file, a glob without match, not HDF5, unreadable. `progress` is told by
// any thread of the team, one at a time.
runtime::Result<DatasetInfo> describe_dataset(const std::vector<std::string>& paths,
                                              runtime::ThreadTeam& team,
                                              const Progress& progress = {});

}  // namespace troupe::pipeline
