#pragma once

// Data of one schema as files of another.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/data/dataset_info.h"
#include "pipeline/data/progress.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct ConversionOptions {
  std::vector<std::string> paths;  // as in DatasetOptions
  // How they lie. Its binning also counts for the file that is made, if that is calochallenge.
  DescribeOptions from;
  DataSchema to = DataSchema::kLcdFixed;  // not kCustom
  int gzip_level = 1;                     // of HDF5
  std::string program;                    // for the provenance: "troupe 0.1.0"
};

// All files that a conversion to `path` makes, that one first.
std::vector<std::string> converted_files(DataSchema to, const std::string& path);

// Reads all events in order and writes them as one file, in memory of a few blocks. Cells and
// energies are converted to the units of the schema; the same files give the same bytes. The file
// tells where it comes from: names, schema and attributes of the sources and a hash of their
// events. On an Error nothing is left. Errors (kData): those of reading, a bad event, and what the
// schema cannot hold: angles, several channels, a box of other voxels; kUsage: a path without
// "images" for idx. Returns the number of events.
runtime::Result<std::uint64_t> convert_dataset(const ConversionOptions& options,
                                               const std::string& path, runtime::ThreadTeam& team,
                                               const Progress& progress = {});

}  // namespace troupe::pipeline
