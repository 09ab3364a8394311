#pragma once

// The content of a file or a glob of files, for `troupe data info` to print.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/dataset_file.h"
#include "pipeline/data/dataset_options.h"
#include "pipeline/data/event_container.h"
#include "pipeline/data/progress.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct FileInfo {
  std::string path;
  std::uint64_t bytes = 0;
  FileFormat format = FileFormat::kHdf5;
  std::optional<DataSchema> schema;  // nothing: the file has the parts of none
  std::uint64_t events = 0;          // stored ones; 0 where there is no schema
  std::vector<PartInfo> datasets;
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
  ImageShape shape;
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

// A caller's knowledge of files that do not tell it themselves.
struct DescribeOptions {
  std::optional<DataSchema> schema;  // unset: as found
  // The names of the parts. Unset: those of the schema. Set, with an unset schema: it is custom.
  std::optional<DatasetNames> names;
  std::string binning;  // as DatasetOptions has it
  ImageShape shape;     // as DatasetOptions::expected_shape

  // The layout of a file of the schema.
  FileLayout layout(DataSchema schema) const;
};

// The schema of the files, by the first of them. Errors (kData) as describe_dataset()'s, and that
// it has none.
runtime::Result<DataSchema> find_schema(const std::vector<std::string>& paths);

// `paths` as in DatasetOptions. Reads every event of files with a known schema, on the team.
// Errors (kData): no such file, a glob without match, no format that is known here, unreadable.
// `progress` is told by any thread of the team, one at a time.
runtime::Result<DatasetInfo> describe_dataset(const std::vector<std::string>& paths,
                                              const DescribeOptions& options,
                                              runtime::ThreadTeam& team,
                                              const Progress& progress = {});

}  // namespace troupe::pipeline
