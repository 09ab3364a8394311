#include "pipeline/data/chunk_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::Result;

namespace {

constexpr std::uint64_t kContiguousBlockBytes = 1u << 20;
constexpr std::uint64_t kMaxBlockBytes = 1ULL << 30;

}  // namespace

Result<ChunkReader> ChunkReader::create(Hdf5Dataset dataset) {
  ChunkReader reader(std::move(dataset));
  const Hdf5Dataset& d = reader.dataset_;
  if (d.type() == Hdf5Type::kInteger || d.type() == Hdf5Type::kOther) {
    return data_error(fmt::format("{}: {}; expected floating point", d.place(), d.type_text()));
  }
  if (d.shape().empty() || d.rows() == 0 || d.row_size() == 0) {
    return data_error(fmt::format("{}: {} holds no events", d.place(), d.shape_text()));
  }
  RETURN_IF_ERROR(d.check_claims());
  reader.note_ = reader.why_not_raw();
  reader.raw_ = reader.note_.empty();
  // Only the library hides missing chunks; decoding here meets each of them.
  if (!reader.raw_) RETURN_IF_ERROR(d.check_written());
  if (d.chunk().empty()) {
    reader.block_rows_ = std::max<std::uint64_t>(1, kContiguousBlockBytes / 4 / d.row_size());
  } else {
    reader.block_rows_ = d.chunk()[0];
    reader.chunk_elements_ = 1;
    for (const std::uint64_t extent : d.chunk()) reader.chunk_elements_ *= extent;
    for (std::size_t i = 0; i < d.filters().size(); ++i) {
      if (d.filters()[i].id == H5Z_FILTER_SHUFFLE) reader.shuffle_filter_ = static_cast<int>(i);
      if (d.filters()[i].id == H5Z_FILTER_DEFLATE) reader.gzip_filter_ = static_cast<int>(i);
    }
  }
  reader.block_rows_ = std::min(reader.block_rows_, d.rows());
  if (reader.block_rows_ > kMaxBlockBytes / sizeof(float) / d.row_size()) {
    return data_error(
        fmt::format("{}: its chunks of {} events are too large to read; rewrite it with chunks of "
                    "about 1 MiB",
                    d.place(), reader.block_rows_));
  }
  if ((d.rows() - 1) / reader.block_rows_ >= std::numeric_limits<std::uint32_t>::max()) {
    return data_error(fmt::format("{}: more than 2^32 chunks", d.place()));
  }
  return reader;
}

std::string ChunkReader::why_not_raw() const {
  const auto slow = [this](const std::string& reason) {
    return fmt::format("{} is decoded by the HDF5 library on one thread: {}", dataset_.place(),
                       reason);
  };
  if (dataset_.chunk().empty()) return slow("it is not chunked");
  if (dataset_.type() == Hdf5Type::kOtherFloat) return slow("it is " + dataset_.type_text());
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

std::uint32_t ChunkReader::blocks() const {
  return static_cast<std::uint32_t>((rows() + block_rows_ - 1) / block_rows_);
}

std::uint64_t ChunkReader::rows_of(std::uint32_t block) const {
  return std::min(block_rows_, rows() - first_row(block));
}

Result<void> ChunkReader::read(std::span<const std::uint32_t> blocks, runtime::ThreadTeam& team,
                               ChunkScratch& scratch, const Consumer& consumer) const {
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

Result<void> ChunkReader::read_block(std::uint32_t block, Scratch& scratch) const {
  const std::uint64_t rows = rows_of(block);
  scratch.block.resize(block_rows_ * row_size());
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
  const bool whole_rows = chunk[0] == block_rows_ &&
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
      float* target = scratch.block.data() + to * shape[last] + offset[last];
      if (dataset_.type() == Hdf5Type::kFloat32) {
        std::memcpy(target, scratch.chunk.data() + from * 4, run * 4);
      } else {
        const auto* values = reinterpret_cast<const double*>(scratch.chunk.data()) + from;
        std::transform(values, values + run, target,
                       [](double v) { return static_cast<float>(v); });
      }
    }
    for (std::size_t axis = last; axis-- > 0;) {
      if (++at[axis] < chunk[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace troupe::pipeline
