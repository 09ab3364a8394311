#pragma once

// The images of one file, by blocks of rows, as float. What a block is, and how it is decoded, is
// the format's: chunk_reader.h, idx_file.h, record_file.h.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/chunk_codec.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// Working memory of a team that reads. Keep it from one read() to the next: it is large.
struct ReadScratch {
  struct OfThread {
    std::vector<std::byte> stored;
    std::vector<std::byte> inflated;
    std::vector<std::byte> chunk;
    std::vector<float> block;
    std::vector<float> other;  // of readers that change what another reader has read
    Inflater inflater;
  };
  std::vector<OfThread> threads;
};

class BlockReader {
 public:
  // Called with a block's number, its values [rows of the block][row_size] and the thread of the
  // team that calls, which may overwrite the values; blocks in any order, several at a time. An
  // Error ends the reading.
  using Consumer = std::function<runtime::Result<void>(std::uint32_t block, std::span<float> values,
                                                       int thread)>;

  virtual ~BlockReader() = default;

  // "/data/a.h5: dataset ECAL", the start of every message about it.
  const std::string& place() const { return images_.place; }
  // "(1000, 25, 25, 25) float32"
  const std::string& shape_text() const { return images_.shape_text; }
  // Rows first.
  const std::vector<std::uint64_t>& shape() const { return images_.shape; }
  // The files that the values lie in, which links may make others than was opened.
  const std::vector<std::string>& homes() const { return images_.homes; }
  // Numbers of 8 bits without a sign.
  bool of_bytes() const { return images_.of_bytes; }
  std::uint64_t rows() const { return images_.shape[0]; }
  std::uint64_t row_size() const { return row_size_; }
  // Rows of every block but the last, which may have fewer.
  std::uint64_t block_rows() const { return block_rows_; }
  std::uint32_t blocks() const;
  std::uint64_t first_row(std::uint32_t block) const { return block * block_rows_; }
  std::uint64_t rows_of(std::uint32_t block) const;
  // Why reading is slow or takes memory; empty when it does not.
  const std::string& note() const { return images_.note; }

  // Reads each of `blocks` once. The Error is that of the first block in the list that failed.
  // `scratch` is made as large as needed; one read at a time with it.
  runtime::Result<void> read(std::span<const std::uint32_t> blocks, runtime::ThreadTeam& team,
                             ReadScratch& scratch, const Consumer& consumer) const;

 protected:
  using Scratch = ReadScratch::OfThread;

  struct Images {
    std::string place;
    std::string shape_text;
    std::vector<std::uint64_t> shape;  // at least one row of at least one number
    std::vector<std::string> homes;
    std::string note;
    bool of_bytes = false;
  };

  BlockReader() = default;
  BlockReader(BlockReader&&) = default;
  BlockReader& operator=(BlockReader&&) = default;

  // Before anything else. Errors (kData): more blocks than have numbers.
  runtime::Result<void> begin(Images images, std::uint64_t block_rows);
  // As many rows as make about 1 MiB of floats.
  static std::uint64_t usual_block_rows(std::uint64_t row_size);

  friend class BoxReader;
  friend class JoinedReader;
  // Writes the rows of the block to the front of scratch.block, making it large enough.
  virtual runtime::Result<void> read_block(std::uint32_t block, Scratch& scratch) const = 0;

 private:
  Images images_;
  std::uint64_t row_size_ = 1;
  std::uint64_t block_rows_ = 1;
};

}  // namespace troupe::pipeline
