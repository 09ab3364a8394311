#pragma once

// A small file in each format and layout that can be read, to do the same with all of them.

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "pipeline/data/dataset_options.h"

namespace troupe::pipeline {

struct SmallFile {
  const char* name;
  DataSchema schema;
  // Writes sound data, and says in the options where they lie. Returns one of the files.
  std::function<std::string(const std::string& folder, DatasetOptions& options)> write;
};

void PrintTo(const SmallFile& file, std::ostream* out);

std::vector<SmallFile> small_files();

}  // namespace troupe::pipeline
