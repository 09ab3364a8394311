#pragma once

// An HDF5 file opened for reading, and the datasets that it holds.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/hdf5_dataset.h"
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

class Hdf5File {
 public:
  // Errors are kData, name the path and say whether the file is missing, not HDF5, open in another
  // program, cut short or damaged, or that no descriptors are left.
  static runtime::Result<Hdf5File> open(const std::string& path);

  const std::string& path() const { return path_; }
  // True if every link of "group/name" exists and the last one leads to a dataset.
  bool contains(const std::string& name) const;
  // An Error names the datasets there are.
  runtime::Result<Hdf5Dataset> dataset(const std::string& name) const;
  // A dataset that walk() has found.
  runtime::Result<Hdf5Dataset> dataset(const Hdf5Place& place) const;
  // All datasets, groups entered.
  runtime::Result<Hdf5Walk> walk() const { return walk_datasets(handle_, path_); }
  // An attribute of the root as a number; nothing if it is missing or no number.
  std::optional<double> number_attribute(const std::string& name) const;
  // All attributes of the root as text, in order of name.
  std::vector<std::pair<std::string, std::string>> attributes() const;

 private:
  std::string path_;
  Hdf5Handle handle_;
};

}  // namespace troupe::pipeline
