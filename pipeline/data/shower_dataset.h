#pragma once

// Generated showers as HDF5 files in the schema of their detector.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/data/progress.h"
#include "pipeline/data/shower_generator.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct ShowerDatasetOptions {
  ShowerOptions showers;
  std::uint64_t events = 1000;
  // Events are spread evenly over files, called as shower_file_name() has it: sorting them by bytes
  // sorts by event.
  std::uint32_t files = 1;
  // 0: not compressed; 1 to 9: gzip, compressed on the team. No byte shuffle: it breaks up the runs
  // of zeros that showers consist of, and files become half as large again.
  int gzip_level = 1;
  // Events per chunk; 0: as many as make a chunk of about 1 MiB.
  std::uint32_t chunk_events = 0;
};

// lcd-fixed: ECAL and target, whose rows are (11, energy): the particle's PDG number and GeV.
// lcd-angle: ECAL, energy, theta, mtheta (measure_angle()) and sum.
// Attributes: power (1), threshold, scale (stored units per GeV), angle ("fixed" or "theta"),
// generator, seed. The same options make the same bytes, and an event does not depend on how many
// there are or in how many files.
//
// A name either is absent or holds a whole file (shower_file.h); an existing file is replaced. On
// an Error (kData: path, what failed, why; kUsage: options; kInternal; that of `progress`) nothing
// half-written stays, and files completed before it do. Returns the paths in order.
runtime::Result<std::vector<std::string>> write_shower_dataset(const ShowerDatasetOptions& options,
                                                               const std::string& path,
                                                               runtime::ThreadTeam& team,
                                                               const Progress& progress = {});

// `data.train: synthetic`: showers made once, kept, and found again.
struct SyntheticOptions {
  ShowerOptions showers;
  std::uint64_t events = 4000;
  // The folder for the file; created if missing. The file's name tells everything its content
  // depends on.
  std::string folder;
};

// The columns (DataColumn::name) that such showers have in a schema.
std::vector<std::string> synthetic_columns(DataSchema schema, const ShowerOptions& showers);

// The path the options lead to, whether or not it exists.
std::string synthetic_path(const SyntheticOptions& options);

// The same path; the file is made first if it does not exist. Several processes may make it at
// once: each writes a temporary file of its own and renames it, and all have the same content.
runtime::Result<std::string> make_synthetic(const SyntheticOptions& options,
                                            runtime::ThreadTeam& team,
                                            const Progress& progress = {});

}  // namespace troupe::pipeline
