#pragma once

// The events of files as they are stored, one after the other, without keeping them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/dataset_file.h"
#include "pipeline/data/dataset_info.h"
#include "pipeline/data/event_container.h"
#include "pipeline/data/shower_file.h"
#include "pipeline/data/shower_generator.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// One thread; memory is that of a few blocks, and of one file's conditions.
class StoredEvents {
 public:
  // Opens all files once. `paths` and `options` as describe_dataset() has them; the team helps in
  // next() and outlives it. Errors (kData): those of DatasetFile::open(), files of different shapes
  // or schemas, a schema that is not to be found.
  static runtime::Result<StoredEvents> open(const std::vector<std::string>& paths,
                                            const DescribeOptions& options,
                                            runtime::ThreadTeam& team);

  DataSchema schema() const { return schema_; }
  const ImageShape& shape() const { return shape_; }
  std::uint64_t size() const { return size_; }
  const std::vector<std::string>& paths() const { return paths_; }
  bool of_bytes() const { return of_bytes_; }      // all images are of bytes
  bool has_angles() const { return has_angles_; }  // otherwise all are at 90 degrees
  // The numbers of an event that all files have beside those of the schema, under the names of
  // their parts; the particle's stands under species_column() of lcd-angle.
  const std::vector<ShowerColumn>& columns() const { return columns_; }
  // The first file's word of itself.
  const std::vector<std::pair<std::string, std::string>>& attributes() const { return attributes_; }

  // The next primaries.size() events, of which there are as many (CHECKed), and the numbers of
  // their columns, [n][all of columns()]. Errors (kData): what cannot be read, a file that has
  // another number of events than before, and an event that is bad (preprocessing.h) or beyond a
  // float.
  runtime::Result<void> next(std::span<Primary> primaries, std::span<float> cells,
                             std::span<double> columns);
  // The hash of all that next() has given so far.
  runtime::Hash128 content() const { return content_.digest(); }

 private:
  explicit StoredEvents(runtime::ThreadTeam& team) : team_(&team) {}
  runtime::Result<void> look_at(const std::string& path, const DescribeOptions& options);
  // The columns of an open file, with the parts that they lie in.
  struct Source {
    ShowerColumn column;
    std::string part;
    std::uint64_t first = 0;  // of the part's numbers
    bool operator==(const Source&) const = default;
  };
  runtime::Result<std::vector<Source>> sources_in(const EventContainer& file,
                                                  std::uint64_t rows) const;
  runtime::Result<void> read_columns(const std::string& path);
  runtime::Result<void> refill();
  runtime::Result<void> check(std::span<const float> cells, std::uint64_t row) const;

  runtime::ThreadTeam* team_;
  FileLayout layout_;
  DataSchema schema_ = DataSchema::kCustom;
  std::vector<std::string> paths_;
  std::vector<std::pair<std::string, std::string>> attributes_;
  std::vector<Source> sources_;
  std::vector<ShowerColumn> columns_;
  std::size_t numbers_ = 0;  // of an event in all columns
  ImageShape shape_;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> rows_;  // of each file when it was looked at
  bool of_bytes_ = true;
  bool has_angles_ = false;

  std::size_t next_file_ = 0;
  std::unique_ptr<DatasetFile> file_;  // null: the next one is to be opened
  EventConditions conditions_;
  std::vector<double> further_;  // [row][numbers_]
  std::uint32_t next_block_ = 0;
  ReadScratch scratch_;
  std::vector<float> ready_;     // images of some blocks of the file
  std::uint64_t ready_row_ = 0;  // of the file: the first that has not been given
  std::uint64_t ready_end_ = 0;
  std::uint64_t ready_first_ = 0;  // the row with which ready_ begins
  runtime::Hasher content_;
};

}  // namespace troupe::pipeline
