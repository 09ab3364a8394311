#pragma once

// One file of a dataset, opened and found to be of the schema.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/block_reader.h"
#include "pipeline/data/dataset_options.h"
#include "pipeline/data/event_container.h"
#include "pipeline/data/preprocessing.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// How events lie in files.
struct FileLayout {
  DataSchema schema = DataSchema::kLcdFixed;
  DatasetNames names;
  std::string binning;                   // as DatasetOptions::binning
  std::vector<DataColumn> columns = {};  // as DatasetOptions::columns
};

// Identifies the content that was indexed: sums over the file and the files that its links lead to,
// or that belong to it.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::uint64_t modified_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

// The numbers of every row besides its image.
struct EventConditions {
  std::vector<double> energies_gev;
  std::vector<double> angles_rad;  // pi/2 where the schema has none
  std::vector<double> columns;     // [row][column]

  std::span<const double> columns_of(std::uint64_t row) const {
    const std::size_t each = columns.size() / energies_gev.size();
    return std::span(columns).subspan(row * each, each);
  }
};

// Whether a DataColumn's name means one of these, of which each is NAME, or NAME.K of several.
bool names_column(const std::string& name, std::span<const std::string> columns);

class DatasetFile {
 public:
  // Checks format, names, ranks, types, row counts, the image's shape (if `expected_shape` is
  // known), and that the attributes `power` and `scale`, where there are any, are those of the
  // schema. Errors (kData) name file and part, what it is and what was expected.
  static runtime::Result<DatasetFile> open(const std::string& path, const FileLayout& layout,
                                           const ImageShape& expected_shape);

  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }
  // The stamp of the files that are now at the same paths.
  FileStamp stamp_now() const;
  std::uint64_t rows() const { return images_->rows(); }
  const ImageShape& shape() const { return shape_; }
  const BlockReader& images() const { return *images_; }
  const Column& energy() const { return energy_; }
  const std::optional<Column>& angle() const { return angle_; }  // none: pi/2 throughout
  // CaloBinning::text() of what the images' voxels were put into; "" for others.
  const std::string& box_text() const { return box_text_; }

  runtime::Result<EventConditions> read_conditions() const;
  // "/data/a.h5: dataset ECAL", for what is said about a part of an event.
  const std::string& place(EventPart part) const;
  // What keeps an event with these numbers in its columns from being used: "/data/a.h5: dataset
  // pdg" and "is 22; expected one of 11, 211". Nothing: they are good.
  struct ColumnFault {
    std::string place, text;
  };
  std::optional<ColumnFault> fault_of_columns(std::span<const double> numbers) const;

 private:
  struct Chosen {
    Column numbers;
    int number = 0;     // of the column
    DataColumn wanted;  // one of FileLayout::columns
  };

  DatasetFile() = default;
  runtime::Result<void> open_images(const EventContainer& file, const FileLayout& layout,
                                    const ImageShape& expected_shape);
  runtime::Result<void> open_columns(const EventContainer& file, const FileLayout& layout);
  void add_homes();

  std::string path_;
  std::set<std::string> other_homes_;  // of its parts
  FileStamp stamp_;
  std::unique_ptr<BlockReader> images_;
  Column energy_;
  std::optional<Column> angle_;
  std::vector<Chosen> columns_;
  DatasetNames names_;
  ImageShape shape_;
  std::string box_text_;
};

}  // namespace troupe::pipeline
