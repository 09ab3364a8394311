#pragma once

// `data.train: synthetic`: showers made once, kept, and found again.

#include <string>
#include <vector>

#include "pipeline/data/shower_dataset.h"

namespace troupe::pipeline {

struct SyntheticOptions {
  ShowerOptions showers;
  std::uint64_t events = 4000;
  // Where the file is kept; created if missing. Its name tells everything its content depends on.
  std::string folder;
};

// The path the options lead to, whether or not it exists.
std::string synthetic_path(const SyntheticOptions& options);

// That path, made first if it does not exist. Several processes may do so at once: each writes a
// temporary file of its own, and whichever is renamed last has the same content.
runtime::Result<std::string> make_synthetic(const SyntheticOptions& options,
                                            runtime::ThreadTeam& team,
                                            const Progress& progress = {});

}  // namespace troupe::pipeline
