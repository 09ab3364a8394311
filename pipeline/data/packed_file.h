#pragma once

// The packed events of a data file, kept in a file that the processes of a machine map. They share
// its pages, so that the events are in memory once, however many members compute with them.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/data/packed_events.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

// Where the events of one block lie in the file.
struct PackedBlock {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;  // 0: it has none, and nothing lies there
  runtime::Hash128 hash = {};
};

// Any thread reads. Nobody writes to a file that is there, or makes it shorter: another one takes
// its place.
class PackedFile {
 public:
  // Nothing where there is none, or it is of something else, or it is damaged in what is read now:
  // it is then made anew. `cells`: of each event.
  static std::optional<PackedFile> open(const std::string& path, std::string_view identity,
                                        std::uint32_t blocks, std::size_t cells);

  std::uint64_t bytes() const { return file_.size(); }
  // The events of a block, which has so many. Errors (kData): damaged bytes.
  runtime::Result<std::unique_ptr<PackedEvents>> block(std::uint32_t number,
                                                       std::uint64_t events) const;

 private:
  PackedFile(std::string path, runtime::Buffer file, std::size_t cells)
      : path_(std::move(path)), file_(std::move(file)), cells_(cells) {}

  std::string path_;
  runtime::Buffer file_;
  std::size_t cells_;
  std::vector<PackedBlock> blocks_;
};

// Writes one. Errors are kData and name the path.
class PackedFileWriter {
 public:
  static runtime::Result<PackedFileWriter> create(const std::string& path, std::uint32_t blocks);
  PackedFileWriter(PackedFileWriter&& other) noexcept
      : file_(std::move(other.file_)), end_(other.end_), blocks_(std::move(other.blocks_)) {}

  // Each block at most once; any thread.
  runtime::Result<void> add(std::uint32_t block, const PackedEvents& events);
  // Puts it in its place.
  runtime::Result<void> finish(std::string_view identity);

 private:
  PackedFileWriter(runtime::NewFile file, std::uint32_t blocks);

  runtime::NewFile file_;
  std::mutex mutex_;  // of what follows
  std::uint64_t end_;
  std::vector<PackedBlock> blocks_;
};

}  // namespace troupe::pipeline
