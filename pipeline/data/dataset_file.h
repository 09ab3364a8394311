#pragma once

// One file of a dataset, opened and found to be of the schema.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/data/chunk_reader.h"
#include "pipeline/data/dataset_options.h"
#include "pipeline/data/hdf5_dataset.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Identifies the content that was indexed: sums over the file and the files that its external links
// lead to.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::uint64_t modified_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

// Energy and angle of every row.
struct EventConditions {
  std::vector<double> energies_gev;
  std::vector<double> angles_rad;  // pi/2 where the schema has none
};

class DatasetFile {
 public:
  // Checks names, ranks, types, row counts, the image's shape (if `expected_shape` is not all 0),
  // and that the attributes `power` and `scale`, where there are any, are those of the schema.
  // Errors (kData) name file and dataset, what it is and what was expected.
  static runtime::Result<DatasetFile> open(const std::string& path, DataSchema schema,
                                           const DatasetNames& names,
                                           std::array<std::uint32_t, 3> expected_shape);

  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }
  // The stamp of the files that are now at the same paths.
  FileStamp stamp_now() const;
  std::uint64_t rows() const { return images_.rows(); }
  std::array<std::uint32_t, 3> shape() const { return shape_; }
  const ChunkReader& images() const { return images_; }
  const Hdf5Dataset& energy() const { return energy_; }
  const std::optional<Hdf5Dataset>& angle() const { return angle_; }  // none: pi/2 throughout

  runtime::Result<EventConditions> read_conditions() const;

 private:
  DatasetFile(std::string path, ChunkReader images, Hdf5Dataset energy);

  std::string path_;
  std::set<std::string> other_homes_;  // of its datasets, which links may lead to
  FileStamp stamp_;
  ChunkReader images_;
  Hdf5Dataset energy_;
  std::optional<Hdf5Dataset> angle_;
  int energy_column_ = 0;
  double energy_unit_gev_ = 1;
  std::array<std::uint32_t, 3> shape_{};
};

}  // namespace troupe::pipeline
