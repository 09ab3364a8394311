#pragma once

// The images of one dataset, by blocks of rows, as float.
//
// Chunks are fetched as they are stored and decoded here, because the library itself decodes on one
// thread. A block is a row of chunks: every chunk that holds events [i c, (i + 1) c), c being the
// chunk's first extent. One thread at a time is in the library, the others decode.
// Data that cannot be decoded here (not chunked, other filters, other types) is read by the library
// in blocks of the same kind; note() says so.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/chunk_codec.h"
#include "pipeline/data/hdf5_dataset.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

// Working memory of a team that reads. Keep it from one read() to the next: it is large.
struct ChunkScratch {
  struct OfThread {
    std::vector<std::byte> stored;
    std::vector<std::byte> inflated;
    std::vector<std::byte> chunk;
    std::vector<float> block;
    Inflater inflater;
  };
  std::vector<OfThread> threads;
};

class ChunkReader {
 public:
  // Called with a block's number, its values [rows of the block][row_size] and the thread of the
  // team that calls, which may overwrite the values; blocks in any order, several at a time. An
  // Error ends the reading.
  using Consumer = std::function<runtime::Result<void>(std::uint32_t block, std::span<float> values,
                                                       int thread)>;

  // Errors (kData): no floating point data, a claim beyond what the file can hold, values in other
  // files, chunks of more than 1 GiB, and, where the library decodes, chunks never written.
  static runtime::Result<ChunkReader> create(Hdf5Dataset dataset);

  const Hdf5Dataset& dataset() const { return dataset_; }
  std::uint64_t rows() const { return dataset_.rows(); }
  std::uint64_t row_size() const { return dataset_.row_size(); }
  // Rows of every block but the last, which may have fewer.
  std::uint64_t block_rows() const { return block_rows_; }
  std::uint32_t blocks() const;
  std::uint64_t first_row(std::uint32_t block) const { return block * block_rows_; }
  std::uint64_t rows_of(std::uint32_t block) const;
  // Why the library decodes; empty when it does not.
  const std::string& note() const { return note_; }

  // Reads each of `blocks` once. The Error is that of the first block in the list that failed.
  // `scratch` is made as large as needed; one read at a time with it.
  runtime::Result<void> read(std::span<const std::uint32_t> blocks, runtime::ThreadTeam& team,
                             ChunkScratch& scratch, const Consumer& consumer) const;

 private:
  using Scratch = ChunkScratch::OfThread;

  explicit ChunkReader(Hdf5Dataset dataset) : dataset_(std::move(dataset)) {}
  std::string why_not_raw() const;
  runtime::Result<void> read_block(std::uint32_t block, Scratch& scratch) const;
  runtime::Result<void> decode_chunk(std::span<const std::uint64_t> offset, Scratch& scratch) const;
  runtime::Result<void> decode_raw(std::span<const std::uint64_t> offset, Scratch& scratch,
                                   std::span<std::byte> out) const;
  void scatter(std::span<const std::uint64_t> offset, std::uint64_t first_row,
               Scratch& scratch) const;

  Hdf5Dataset dataset_;
  std::uint64_t block_rows_ = 1;
  std::uint64_t chunk_elements_ = 0;
  bool raw_ = false;
  int shuffle_filter_ = -1;  // place in the pipeline, which is also its bit in a chunk's mask
  int gzip_filter_ = -1;
  std::string note_;
};

}  // namespace troupe::pipeline
