#pragma once

// First inputs of the targets about a run that is watched.

#include <filesystem>

namespace troupe::fuzz {

// Into ROOT/TARGET each.
void add_watching_seeds(const std::filesystem::path& root);

}  // namespace troupe::fuzz
