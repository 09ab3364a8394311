#pragma once

// The datasets that a file holds.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// A walk ends at so many links, and does not enter groups with longer paths.
inline constexpr std::uint64_t kMostLinks = 100'000;
inline constexpr std::size_t kMostPathBytes = 4096;

// The place of a dataset in its file. It is opened by its address, without a walk along its name.
struct Hdf5Place {
  std::string name;
  haddr_t address = HADDR_UNDEF;
};

struct Hdf5Walk {
  std::vector<Hdf5Place> datasets;  // sorted bytewise by name
  std::uint64_t links = 0;          // looked at
  bool complete = true;             // false: one of the bounds has cut it short
};

// Follows hard links from the root and enters each group once, so that the work grows with the
// number of links and ends where they form a circle. An object with several paths gets the shortest
// as its name. No object stays open. `file` is open; `path` is for messages. An Error (kData) if an
// object cannot be opened.
runtime::Result<Hdf5Walk> walk_datasets(const Hdf5Handle& file, const std::string& path);

// "a, b, c", shortened to the first ones and the number of others, or "none". Fit for a terminal.
std::string names_text(const std::vector<std::string>& names);

}  // namespace troupe::pipeline
