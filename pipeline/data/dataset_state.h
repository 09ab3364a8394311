#pragma once

// The members of an open Dataset; for dataset.cpp (reading) and dataset_open.cpp only.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_file.h"
#include "pipeline/data/dataset_index.h"
#include "pipeline/data/dataset_paths.h"
#include "pipeline/data/event_shard.h"
#include "pipeline/data/packed_events.h"
#include "pipeline/data/packed_file.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct Dataset::State {
  struct File {
    std::string path;
    FileStamp stamp;
    RowRange rows;                        // of the split; a file with two ranges is there twice
    std::vector<EventState> states = {};  // of every row; empty where the split takes none
    // With CacheMode::kDisk: its accepted events of both splits, and what keeps them there.
    std::optional<PackedFile> packed = {};
    runtime::Descriptor held = {};
  };

  // Wanted events that are still to be read.
  struct Coming {
    std::vector<std::uint64_t> ids = {};     // ascending
    std::vector<std::uint32_t> blocks = {};  // of theirs; ascending
    std::size_t next = 0;                    // into blocks
    std::size_t reads = 0;
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
  // `first`: the path of the first file, which has the shape.
  runtime::Result<void> check_shape(const DatasetFile& opened, const std::string& first);
  void take_index(std::uint32_t file, const FileIndex& index);
  // Ends the file's rows behind the last event that DatasetOptions::events allows.
  void end_rows(File& entry, const FileIndex& index) const;
  // Whether the file has a range of rows before this one that was taken.
  bool is_there_before(const File& entry) const;
  std::uint64_t events_left() const;
  runtime::Error nothing_left() const;

  // dataset.cpp
  // The accepted events of a block that are among `rows`, in order, or nothing if there are none.
  std::unique_ptr<PackedEvents> pack(RowRange rows, std::uint64_t first_row,
                                     std::span<const EventState> states,
                                     std::span<const float> images) const;
  std::uint32_t block_of(std::uint64_t id) const;
  // An event that a read() asks for, and its place among the others.
  struct Asked {
    std::uint64_t id;
    std::size_t place;
    auto operator<=>(const Asked&) const = default;
  };
  // Makes events present. Returns those that are to be read straight to their places, as nothing
  // keeps them; ascending.
  runtime::Result<std::vector<Asked>> load(std::span<const std::uint64_t> ids);
  runtime::Result<void> load_blocks(std::uint32_t file, std::span<const std::uint32_t> blocks);
  runtime::Result<void> load_packed(const File& file, std::span<const std::uint32_t> blocks);
  // Does the work for the blocks, which ascend, of each file in turn.
  runtime::Result<void> by_file(
      std::span<const std::uint32_t> wanted,
      const std::function<runtime::Result<void>(
          std::uint32_t file, std::span<const std::uint32_t> blocks)>& work) const;
  // Hands the sink each of the file's blocks; any thread of the team, several at a time.
  using BlockSink = std::function<void(const Block& block, std::span<const float> images)>;
  runtime::Result<void> read_blocks(std::uint32_t file, std::span<const std::uint32_t> wanted,
                                    const BlockSink& sink);
  // The same for each accepted event of blocks of any files, as it is stored.
  using EventSink = std::function<void(std::uint64_t id, std::span<const float> stored)>;
  runtime::Result<void> read_events(std::span<const std::uint32_t> wanted, const EventSink& sink);
  runtime::Result<void> read_straight(std::span<const Asked> asked, std::span<float> images);
  runtime::Result<const DatasetFile*> opened(std::uint32_t file);
  // Blocks of the ids, each once; both ascend.
  std::vector<std::uint32_t> blocks_of(std::span<const std::uint64_t> ids) const;
  // Reads the part of `coming` that belongs to one of so many reads.
  runtime::Result<void> gather();
  // Writes all cells of an event that is present.
  void unpack(std::uint64_t id, std::span<float> out) const;

  DatasetOptions options;
  FileLayout layout;
  Preprocessing preprocessing;
  std::unique_ptr<runtime::ThreadTeam> team;
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
  std::optional<EventShard> shard;  // with CacheMode::kShard
  Coming coming;
  ReadScratch scratch;
  // Files that stay open for reading without a memory cache, the last used first.
  std::vector<std::pair<std::uint32_t, DatasetFile>> open_files;
  runtime::Hasher content;
  runtime::Hash128 fingerprint;
  DatasetReport report;
};

// The error of a file that another process has changed since it was opened.
runtime::Error changed_data(const std::string& path);

}  // namespace troupe::pipeline
