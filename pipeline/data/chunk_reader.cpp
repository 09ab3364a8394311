#include "pipeline/data/chunk_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::Result;

namespace {

constexpr std::uint64_t kMaxBlockBytes = 1ULL << 30;

}  // namespace

Result<ChunkReader> ChunkReader::create(Hdf5Dataset dataset) {
  ChunkReader reader(std::move(dataset));
  const Hdf5Dataset& d = reader.dataset_;
  if (d.type() == Hdf5Type::kOther) {
    return data_error(fmt::format("{}: {}; expected numbers", d.place(), d.type_text()));
  }
  if (d.shape().empty() || d.rows() == 0 || d.row_size() == 0) {
    return data_error(fmt::format("{}: {} holds no events", d.place(), d.shape_text()));
  }
  RETURN_IF_ERROR(d.check_claims());
  const std::string note = reader.why_not_raw();
  reader.raw_ = note.empty();
  // Only the library hides missing chunks; decoding here meets each of them.
  if (!reader.raw_) RETURN_IF_ERROR(d.check_written());
  ASSIGN_OR_RETURN(const std::uint64_t block_rows, reader.plan_blocks());
  RETURN_IF_ERROR(reader.begin({.place = d.place(),
                                .shape_text = d.shape_text(),
                                .shape = d.shape(),
                                .homes = {d.home()},
                                .note = note,
                                .of_bytes = d.type() == Hdf5Type::kByte},
                               block_rows));
  return reader;
}

// Returns the rows of a block.
Result<std::uint64_t> ChunkReader::plan_blocks() {
  const Hdf5Dataset& d = dataset_;
  std::uint64_t rows = usual_block_rows(d.row_size());
  if (!d.chunk().empty()) {
    rows = d.chunk()[0];
    chunk_elements_ = 1;
    for (const std::uint64_t extent : d.chunk()) chunk_elements_ *= extent;
    for (std::size_t i = 0; i < d.filters().size(); ++i) {
      if (d.filters()[i].id == H5Z_FILTER_SHUFFLE) shuffle_filter_ = static_cast<int>(i);
      if (d.filters()[i].id == H5Z_FILTER_DEFLATE) gzip_filter_ = static_cast<int>(i);
    }
  }
  rows = std::min(rows, d.rows());
  if (rows > kMaxBlockBytes / sizeof(float) / d.row_size()) {
    return data_error(
        fmt::format("{}: its chunks of {} events are too large to read; rewrite it with chunks of "
                    "about 1 MiB",
                    d.place(), rows));
  }
  return rows;
}

std::string ChunkReader::why_not_raw() const {
  const auto slow = [this](const std::string& reason) {
    return fmt::format("{} is decoded by the HDF5 library on one thread: {}", dataset_.place(),
                       reason);
  };
  if (dataset_.chunk().empty()) return slow("it is not chunked");
  if (dataset_.type() == Hdf5Type::kOtherFloat || dataset_.type() == Hdf5Type::kInteger) {
    return slow("it is " + dataset_.type_text());
  }
  const auto& filters = dataset_.filters();
  for (const Hdf5Filter& filter : filters) {
    if (filter.id != H5Z_FILTER_SHUFFLE && filter.id != H5Z_FILTER_DEFLATE) {
      return slow("it is stored with " + filter.name);
    }
  }
  const bool known =
      filters.size() <= 1 || (filters.size() == 2 && filters[0].id == H5Z_FILTER_SHUFFLE &&
                              filters[1].id == H5Z_FILTER_DEFLATE);
  return known ? "" : slow("its filters are not shuffle, then gzip");
}

Result<void> ChunkReader::read_block(std::uint32_t block, Scratch& scratch) const {
  const std::uint64_t rows = rows_of(block);
  scratch.block.resize(block_rows() * row_size());
  if (!raw_) return dataset_.read_rows(first_row(block), rows, scratch.block.data());
  const auto& shape = dataset_.shape();
  const auto& chunk = dataset_.chunk();
  std::vector<std::uint64_t> offset(shape.size(), 0);
  offset[0] = first_row(block);
  // Counts the chunks of the row like digits, the last axis fastest.
  for (;;) {
    RETURN_IF_ERROR(decode_chunk(offset, scratch));
    std::size_t axis = shape.size() - 1;
    for (; axis > 0; --axis) {
      offset[axis] += chunk[axis];
      if (offset[axis] < shape[axis]) break;
      offset[axis] = 0;
    }
    if (axis == 0) return {};
  }
}

Result<void> ChunkReader::decode_chunk(std::span<const std::uint64_t> offset,
                                       Scratch& scratch) const {
  const std::size_t bytes = chunk_elements_ * dataset_.element_bytes();
  const auto& chunk = dataset_.chunk();
  // A chunk that is a whole block is decoded in place. Any other chunk is decoded beside the block
  // and copied.
  const bool whole_rows = chunk[0] == block_rows() &&
                          std::equal(chunk.begin() + 1, chunk.end(), dataset_.shape().begin() + 1);
  if (whole_rows && dataset_.type() == Hdf5Type::kFloat32) {
    return decode_raw(offset, scratch, std::as_writable_bytes(std::span<float>(scratch.block)));
  }
  scratch.chunk.resize(bytes);
  RETURN_IF_ERROR(decode_raw(offset, scratch, scratch.chunk));
  scatter(offset, offset[0], scratch);
  return {};
}

Result<void> ChunkReader::decode_raw(std::span<const std::uint64_t> offset, Scratch& scratch,
                                     std::span<std::byte> out) const {
  const auto damaged = [&](std::string_view what) {
    return data_error(fmt::format("{}: the chunk of row {} {}; the file is damaged",
                                  dataset_.place(), offset[0], what));
  };
  ASSIGN_OR_RETURN(const std::uint64_t stored, dataset_.chunk_bytes(offset));
  if (dataset_.filters().empty()) {
    if (stored != out.size()) return damaged("has the wrong size");
    ASSIGN_OR_RETURN([[maybe_unused]] const std::uint32_t no_filters,
                     dataset_.read_chunk(offset, out));
    return {};
  }
  // Incompressible data grows by a few bytes per 64 KiB and the header of the stream.
  if (stored > out.size() + out.size() / 1024 + 4096) return damaged("claims too many bytes");
  scratch.stored.resize(stored);
  ASSIGN_OR_RETURN(const std::uint32_t mask, dataset_.read_chunk(offset, scratch.stored));
  const auto applied = [mask](int filter) { return filter >= 0 && (mask >> filter & 1) == 0; };
  std::span<const std::byte> bytes = scratch.stored;
  // A chunk's mask names filters that were left out for it: writers skip gzip where it does not
  // pay.
  const bool shuffled = applied(shuffle_filter_);
  if (applied(gzip_filter_)) {
    std::span<std::byte> target = out;
    if (shuffled) {
      scratch.inflated.resize(out.size());
      target = scratch.inflated;
    }
    if (!scratch.inflater.inflate(bytes, target)) return damaged("does not decompress");
    bytes = target;
  }
  if (bytes.size() != out.size()) return damaged("has the wrong size");
  if (shuffled) {
    unshuffle_bytes(bytes, dataset_.element_bytes(), out);
  } else if (bytes.data() != out.data()) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
  }
  return {};
}

// Converts `run` elements of the decoded chunk.
void ChunkReader::take_run(std::uint64_t from, std::uint64_t run, const Scratch& scratch,
                           float* target) const {
  const std::byte* const chunk = scratch.chunk.data();
  if (dataset_.type() == Hdf5Type::kFloat32) {
    std::memcpy(target, chunk + from * 4, run * 4);
  } else if (dataset_.type() == Hdf5Type::kByte) {
    std::transform(chunk + from, chunk + from + run, target,
                   [](std::byte v) { return static_cast<float>(std::to_integer<int>(v)); });
  } else {
    const auto* values = reinterpret_cast<const double*>(chunk) + from;
    std::transform(values, values + run, target, [](double v) { return static_cast<float>(v); });
  }
}

// Copies the part of the chunk that lies inside the dataset to its place in the block. The chunk
// may reach beyond the dataset's shape along every axis, so the copy goes in runs along the last
// axis, and an odometer over the other axes finds the next run.
void ChunkReader::scatter(std::span<const std::uint64_t> offset, std::uint64_t first_row,
                          Scratch& scratch) const {
  const auto& shape = dataset_.shape();
  const auto& chunk = dataset_.chunk();
  const std::size_t last = shape.size() - 1;
  const std::uint64_t run = std::min(chunk[last], shape[last] - offset[last]);
  std::vector<std::uint64_t> at(shape.size(), 0);  // inside the chunk
  for (std::uint64_t from = 0; from < chunk_elements_; from += chunk[last]) {
    bool inside = true;
    std::uint64_t to = 0;
    for (std::size_t axis = 0; axis < last; ++axis) {
      const std::uint64_t place = offset[axis] + at[axis];
      inside = inside && place < shape[axis];
      to = to * shape[axis] + (axis == 0 ? place - first_row : place);
    }
    if (inside) {
      take_run(from, run, scratch, scratch.block.data() + to * shape[last] + offset[last]);
    }
    for (std::size_t axis = last; axis-- > 0;) {
      if (++at[axis] < chunk[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace troupe::pipeline
