#pragma once

// An HDF5 file opened for reading.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/hdf5_dataset.h"
#include "pipeline/data/hdf5_handle.h"
#include "pipeline/data/hdf5_walk.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

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
