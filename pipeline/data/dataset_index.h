#pragma once

// The facts about every row of a file after it was read once, and the cache of them.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/data/dataset_file.h"
#include "pipeline/data/dataset_options.h"
#include "pipeline/data/preprocessing.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct FileIndex {
  ImageShape shape;
  std::uint64_t block_rows = 0;
  std::vector<EventState> states;  // of every row
  std::vector<float> energies;     // GeV / 100
  std::vector<float> angles;       // rad
  std::vector<float> ecals;
  std::vector<float> columns;  // [row][column]
  std::uint64_t bad = 0;
  // The first few as "/data/a.h5: dataset ECAL, event 17: cell ...".
  std::vector<std::string> bad_events;
  // Hash of energies, angles, images and columns as float, in order of rows; chunks and compression
  // do not count.
  runtime::Hash128 content;

  std::uint64_t rows() const { return states.size(); }
  std::span<const float> columns_of(std::uint64_t row) const {
    const std::size_t each = columns.size() / states.size();
    return std::span(columns).subspan(row * each, each);
  }
};

// Called with each block once its events are judged: its rows' states and stored images
// [rows][X][Y][Z][channels]. Blocks in any order, several at a time. An Error ends the reading.
using BlockVisitor = std::function<runtime::Result<void>(
    std::uint32_t block, std::span<const EventState> states, std::span<const float> images)>;

// Reads the whole file. Errors (kData): what cannot be read; those of the visitor.
runtime::Result<FileIndex> scan_file(const DatasetFile& file, const Preprocessing& preprocessing,
                                     runtime::ThreadTeam& team, ReadScratch& scratch,
                                     const BlockVisitor& visitor = {});

// The options that an index depends on, besides the file itself.
struct IndexKey {
  DataSchema schema;
  DatasetNames names;
  Preprocessing preprocessing;
  std::string box = {};                  // DatasetFile::box_text()
  std::vector<DataColumn> columns = {};  // DatasetOptions::columns
};

// Everything that must be as it was for what was kept of a file to hold. Not for people.
std::string index_identity(const IndexKey& key, const std::string& path, const FileStamp& stamp);
// Where it is kept: one name per path and key, so that a changed file replaces what was kept of it.
std::string kept_path(const std::string& folder, const IndexKey& key, const std::string& path,
                      std::string_view extension);

// The index kept in `folder` for this path, size, modification time and key; nothing if there is
// none, or it is damaged.
std::optional<FileIndex> load_index(const std::string& folder, const IndexKey& key,
                                    const std::string& path, const FileStamp& stamp);
// Keeps it, creating the folder if needed. The caller may go on after an Error.
runtime::Result<void> save_index(const std::string& folder, const IndexKey& key,
                                 const std::string& path, const FileStamp& stamp,
                                 const FileIndex& index);

}  // namespace troupe::pipeline
