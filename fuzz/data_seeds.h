#pragma once

// First inputs of the target of data files.

#include <filesystem>

namespace troupe::fuzz {

// Into ROOT/fuzz_data_files.
void add_data_seeds(const std::filesystem::path& root);

}  // namespace troupe::fuzz
