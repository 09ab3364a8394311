#include "pipeline/data/block_reader.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::uint64_t kReadBytes = 1u << 20;

}  // namespace

std::uint64_t BlockReader::usual_block_rows(std::uint64_t row_size) {
  return std::max<std::uint64_t>(1, kReadBytes / sizeof(float) / row_size);
}

Result<void> BlockReader::begin(Images images, std::uint64_t block_rows) {
  images_ = std::move(images);
  for (std::size_t i = 1; i < images_.shape.size(); ++i) row_size_ *= images_.shape[i];
  CHECK(rows() > 0 && row_size_ > 0 && block_rows > 0, place());
  block_rows_ = std::min(block_rows, rows());
  if ((rows() - 1) / block_rows_ >= std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorKind::kData, fmt::format("{}: more than 2^32 chunks", place())};
  }
  return {};
}

std::uint32_t BlockReader::blocks() const {
  return static_cast<std::uint32_t>((rows() + block_rows_ - 1) / block_rows_);
}

std::uint64_t BlockReader::rows_of(std::uint32_t block) const {
  return std::min(block_rows_, rows() - first_row(block));
}

Result<void> BlockReader::read(std::span<const std::uint32_t> blocks, runtime::ThreadTeam& team,
                               ReadScratch& scratch, const Consumer& consumer) const {
  const auto threads = static_cast<std::size_t>(team.threads());
  if (scratch.threads.size() < threads) scratch.threads.resize(threads);
  // An error per block, so that the error of the first block is reported whichever thread failed
  // first.
  std::vector<std::optional<Error>> errors(blocks.size());
  team.run(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t index, int thread) {
    const auto i = static_cast<std::size_t>(index);
    Scratch& own = scratch.threads[static_cast<std::size_t>(thread)];
    Result<void> result = read_block(blocks[i], own);
    if (result.ok()) {
      const std::size_t values = rows_of(blocks[i]) * row_size();
      result = consumer(blocks[i], std::span<float>(own.block).first(values), thread);
    }
    if (!result.ok()) errors[i] = result.error();
  });
  for (std::optional<Error>& error : errors) {
    if (error) return *std::move(error);
  }
  return {};
}

}  // namespace troupe::pipeline
