#pragma once

// Several images of each event as one.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/data/block_reader.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Rows (N, values): those of other readers one behind the other. Its blocks are whole blocks of the
// part with the largest rows, so many that they hold about as many numbers as the largest block of
// a part. Blocks of the other parts that lie in two of them are read twice.
class JoinedReader final : public BlockReader {
 public:
  // Two or more parts with their names. Errors (kData): a part that has not as many rows as the
  // first one, and blocks of more than 1 GiB.
  static runtime::Result<std::unique_ptr<BlockReader>> create(
      std::vector<std::unique_ptr<BlockReader>> parts, const std::vector<std::string>& names);

 private:
  explicit JoinedReader(std::vector<std::unique_ptr<BlockReader>> parts)
      : parts_(std::move(parts)) {}
  std::uint64_t plan_rows(std::uint64_t values) const;
  runtime::Result<void> read_block(std::uint32_t block, Scratch& scratch) const override;
  // Copies the part's numbers of the block's rows to `place` and behind it in each row of
  // scratch.other.
  runtime::Result<void> read_part(const BlockReader& part, std::uint64_t place, std::uint32_t block,
                                  Scratch& scratch) const;

  std::vector<std::unique_ptr<BlockReader>> parts_;
};

}  // namespace troupe::pipeline
