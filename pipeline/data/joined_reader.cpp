#include "pipeline/data/joined_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/data_error.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

constexpr std::uint64_t kMostJoinedBytes = std::uint64_t{1} << 30;

}  // namespace

Result<std::unique_ptr<BlockReader>> JoinedReader::create(
    std::vector<std::unique_ptr<BlockReader>> parts, const std::vector<std::string>& names) {
  CHECK(parts.size() >= 2 && names.size() == parts.size(), "parts to join");
  const BlockReader& first = *parts.front();
  std::uint64_t values = 0;
  std::vector<std::string> shapes;
  std::set<std::string> homes, notes;
  bool of_bytes = true;
  for (const auto& part : parts) {
    if (part->rows() != first.rows()) {
      return data_error(fmt::format("{}: {}; expected {} rows, as many as {} has: {}",
                                    part->place(), part->shape_text(), first.rows(), first.place(),
                                    first.shape_text()));
    }
    values += part->row_size();
    shapes.push_back(part->shape_text());
    homes.insert(part->homes().begin(), part->homes().end());
    if (!part->note().empty()) notes.insert(part->note());
    of_bytes = of_bytes && part->of_bytes();
  }
  Images images{.place = fmt::format("{} and {}", first.place(),
                                     fmt::join(names.begin() + 1, names.end(), " and ")),
                .shape_text = fmt::format("{}", fmt::join(shapes, " and ")),
                .shape = {first.rows(), values},
                .homes = {homes.begin(), homes.end()},
                .note = fmt::format("{}", fmt::join(notes, "; ")),
                .of_bytes = of_bytes};
  auto reader = std::unique_ptr<JoinedReader>(new JoinedReader(std::move(parts)));
  const std::uint64_t block_rows = reader->plan_rows(values);
  if (block_rows > kMostJoinedBytes / sizeof(float) / values) {
    return data_error(
        fmt::format("{}: {} rows are read at once, which take more than 1 GiB; store "
                    "the parts in smaller chunks",
                    images.place, block_rows));
  }
  RETURN_IF_ERROR(reader->begin(std::move(images), block_rows));
  return std::unique_ptr<BlockReader>(std::move(reader));
}

// Small rows come in blocks of many, and as many of the large ones would take very much memory.
std::uint64_t JoinedReader::plan_rows(std::uint64_t values) const {
  std::uint64_t most = 0;
  for (const auto& part : parts_) most = std::max(most, part->block_rows() * part->row_size());
  const auto& largest = *std::ranges::max_element(parts_, {}, &BlockReader::row_size);
  const std::uint64_t each = largest->block_rows();
  return std::min(largest->rows(), (most / values + each) / each * each);
}

Result<void> JoinedReader::read_block(std::uint32_t block, Scratch& scratch) const {
  scratch.other.resize(block_rows() * row_size());
  std::uint64_t place = 0;
  for (const auto& part : parts_) {
    RETURN_IF_ERROR(read_part(*part, place, block, scratch));
    place += part->row_size();
  }
  std::swap(scratch.block, scratch.other);
  return {};
}

Result<void> JoinedReader::read_part(const BlockReader& part, std::uint64_t place,
                                     std::uint32_t block, Scratch& scratch) const {
  const std::uint64_t first = first_row(block);
  const std::uint64_t end = first + rows_of(block);
  auto of_part = static_cast<std::uint32_t>(first / part.block_rows());
  for (; of_part < part.blocks() && part.first_row(of_part) < end; ++of_part) {
    RETURN_IF_ERROR(part.read_block(of_part, scratch));
    const std::uint64_t begin = part.first_row(of_part);
    const std::uint64_t last = std::min(end, begin + part.rows_of(of_part));
    for (std::uint64_t row = std::max(first, begin); row < last; ++row) {
      std::copy_n(scratch.block.data() + (row - begin) * part.row_size(), part.row_size(),
                  scratch.other.data() + (row - first) * row_size() + place);
    }
  }
  return {};
}

}  // namespace troupe::pipeline
