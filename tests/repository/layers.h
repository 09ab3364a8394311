#pragma once

// What may include what. Each layer sees itself and the layers to its left:
//
//   runtime/base <- model <- pipeline <- config <- actors <- launch <- main
//
// The rest of runtime, and telemetry, which see runtime/base alone and not each other, are seen
// from config on. Headers of this repository are included by their path from its root, in quotes.

#include <functional>
#include <string>
#include <vector>

#include "tests/repository/source_tree.h"

namespace troupe::repository {

// The folders that are layers.
const std::vector<std::string>& layer_folders();

// One line per include of the file that the rule refuses, "model/tensor.h:7: ...". `exists` tells
// whether a path from the root names a file. A file outside the layers may include anything: tests
// and benches do.
std::vector<std::string> refused_includes(const SourceFile& file,
                                          const std::function<bool(const std::string&)>& exists);

}  // namespace troupe::repository
