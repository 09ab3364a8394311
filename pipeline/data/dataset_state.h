#pragma once

// The members of an open Dataset; for dataset.cpp (reading) and dataset_open.cpp only.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_file.h"
#include "pipeline/data/dataset_index.h"
#include "pipeline/data/dataset_paths.h"
#include "pipeline/data/packed_events.h"
#include "pipeline/data/packed_file.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct Dataset::State {
  struct File {
    std::string path;
    FileStamp stamp;
    RowRange rows;                        // of the split
    std::vector<EventState> states = {};  // of every row; empty where the split takes none
    // With CacheMode::kDisk: its accepted events of both splits, and what keeps them there.
    std::optional<PackedFile> packed = {};
    runtime::Descriptor held = {};
  };

  // A block with accepted events of the split.
  struct Block {
    std::uint32_t file;
    std::uint32_t number;     // in the file
    std::uint64_t first_row;  // in the file
    std::uint64_t first_id;
    std::uint32_t rows;
    std::uint32_t events;
    std::uint32_t skipped;  // accepted events before these in its packed events
  };

  // The state of opening.
  struct Opening {
    const OpeningWatch& watch;
    std::mutex mutex;  // of `progress`
    OpeningProgress progress;
    std::vector<std::unique_ptr<PackedEvents>> packed;  // of each block so far

    // `rows` more are done. Returns the result of `watch`.
    runtime::Result<void> add(std::uint64_t rows, std::uint64_t packed_bytes);
    // Adds what it sees.
    BlockVisitor counter();
  };

  explicit State(const DatasetOptions& given);

  // dataset_open.cpp
  runtime::Result<void> open_all(const OpeningWatch& watch);
  runtime::Result<void> open_file(std::uint32_t file, Opening& opening);
  runtime::Result<FileIndex> index_of(const DatasetFile& opened, RowRange rows,
                                      const BlockVisitor& visitor, bool all);
  IndexKey key_of(const DatasetFile& opened) const;
  // The index of a file, whose packed events are mapped then, or written first.
  runtime::Result<FileIndex> index_with_packed(File& entry, const DatasetFile& opened,
                                               Opening& opening);
  runtime::Result<void> check_shape(const DatasetFile& opened);
  void take_index(std::uint32_t file, const FileIndex& index);
  // Ends the file's rows behind the last event that DatasetOptions::events allows.
  void end_rows(File& entry, const FileIndex& index) const;
  std::uint64_t events_left() const;
  runtime::Error nothing_left() const;
  static runtime::Error changed_data(const std::string& path);

  // dataset.cpp
  // The accepted events of a block that are among `rows`, in order, or nothing if there are none.
  std::unique_ptr<PackedEvents> pack(RowRange rows, std::uint64_t first_row,
                                     std::span<const EventState> states,
                                     std::span<const float> images) const;
  std::uint32_t block_of(std::uint64_t id) const;
  // Makes every block of the ids present.
  runtime::Result<void> load(std::span<const std::uint64_t> ids);
  runtime::Result<void> load_blocks(std::uint32_t file, std::span<const std::uint32_t> blocks);
  runtime::Result<void> load_packed(const File& file, std::span<const std::uint32_t> blocks);
  runtime::Result<const DatasetFile*> opened(std::uint32_t file);

  DatasetOptions options;
  FileLayout layout;
  Preprocessing preprocessing;
  runtime::ThreadTeam team;
  ImageShape shape;
  std::vector<File> files;
  std::vector<Block> blocks;
  std::vector<std::uint32_t> block_events;  // of each block
  std::uint64_t largest_block_bytes = 0;    // decoded
  std::uint32_t window_blocks = 0;          // 0 with a memory cache
  std::vector<float> energies;              // of every id
  std::vector<float> angles;
  std::vector<float> ecals;
  std::vector<float> columns;  // [id][DatasetOptions::columns]
  BlockStore store;
  ReadScratch scratch;
  // Files that stay open for reading without a memory cache, the last used first.
  std::vector<std::pair<std::uint32_t, DatasetFile>> open_files;
  runtime::Hasher content;
  runtime::Hash128 fingerprint;
  DatasetReport report;
};

}  // namespace troupe::pipeline
