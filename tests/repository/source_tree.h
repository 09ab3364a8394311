#pragma once

// The repository's own files, as the checks in this folder read them.

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::repository {

struct SourceFile {
  std::string path;  // from the repository's root, with slashes: "model/tensor.h"
  std::vector<std::string> lines;
};

// The repository this test was built from.
std::filesystem::path root();

// Every file in the folders and below whose name ends in one of the extensions (".h"), by path. A
// folder that does not exist holds none.
std::vector<SourceFile> read_sources(const std::vector<std::string>& folders,
                                     const std::vector<std::string>& extensions);

}  // namespace troupe::repository
