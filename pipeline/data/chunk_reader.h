#pragma once

// The images of one HDF5 dataset.
//
// Chunks are fetched as they are stored and decoded here, because the library itself decodes on one
// thread. A block is a row of chunks: every chunk that holds events [i c, (i + 1) c), c being the
// chunk's first extent. One thread at a time is in the library, the others decode.
// Data that cannot be decoded here (not chunked, other filters, other types) is read by the library
// in blocks of the same kind; note() says so.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "pipeline/data/block_reader.h"
#include "pipeline/data/hdf5_dataset.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

class ChunkReader final : public BlockReader {
 public:
  // Errors (kData): no numbers, a claim beyond what the file can hold, values in other
  // files, chunks of more than 1 GiB, and, where the library decodes, chunks never written.
  static runtime::Result<ChunkReader> create(Hdf5Dataset dataset);

  const Hdf5Dataset& dataset() const { return dataset_; }

 private:
  explicit ChunkReader(Hdf5Dataset dataset) : dataset_(std::move(dataset)) {}
  std::string why_not_raw() const;
  runtime::Result<std::uint64_t> plan_blocks();
  runtime::Result<void> read_block(std::uint32_t block, Scratch& scratch) const override;
  runtime::Result<void> decode_chunk(std::span<const std::uint64_t> offset, Scratch& scratch) const;
  runtime::Result<void> decode_raw(std::span<const std::uint64_t> offset, Scratch& scratch,
                                   std::span<std::byte> out) const;
  void take_run(std::uint64_t from, std::uint64_t run, const Scratch& scratch, float* target) const;
  void scatter(std::span<const std::uint64_t> offset, std::uint64_t first_row,
               Scratch& scratch) const;

  Hdf5Dataset dataset_;
  std::uint64_t chunk_elements_ = 0;
  bool raw_ = false;
  int shuffle_filter_ = -1;  // place in the pipeline, which is also its bit in a chunk's mask
  int gzip_filter_ = -1;
};

}  // namespace troupe::pipeline
