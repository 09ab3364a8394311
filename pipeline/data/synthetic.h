#pragma once

// `data.train: synthetic`: showers made once, kept, and found again.

#include <string>
#include <vector>

#include "pipeline/data/shower_dataset.h"

namespace troupe::pipeline {

struct SyntheticOptions {
  ShowerOptions showers;
  std::uint64_t events = 4000;
  // The folder for the file; created if missing. The file's name tells everything its content
  // depends on.
  std::string folder;
};

// The path the options lead to, whether or not it exists.
std::string synthetic_path(const SyntheticOptions& options);

// The same path; the file is made first if it does not exist. Several processes may make it at
// once: each writes a temporary file of its own and renames it, and all have the same content.
runtime::Result<std::string> make_synthetic(const SyntheticOptions& options,
                                            runtime::ThreadTeam& team,
                                            const Progress& progress = {});

}  // namespace troupe::pipeline
