#include "pipeline/data/hdf5_dataset.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/data_error.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

// Deflate cannot expand further, so a dataset that claims more is damaged.
constexpr std::uint64_t kMaxExpansion = 1032;
constexpr std::uint64_t kMaxChunkBytes = 1ULL << 30;

// The most bytes that one stored byte can stand for; nothing if a filter sets no limit.
std::optional<std::uint64_t> expansion(const std::vector<Hdf5Filter>& filters) {
  std::uint64_t factor = 1;
  for (const Hdf5Filter& filter : filters) {
    if (filter.id == H5Z_FILTER_SHUFFLE || filter.id == H5Z_FILTER_FLETCHER32) continue;
    if (filter.id != H5Z_FILTER_DEFLATE || factor > 1) return std::nullopt;
    factor = kMaxExpansion;
  }
  return factor;
}

// Why the values are not in the file the dataset lies in.
std::string elsewhere_of(hid_t creation) {
  if (H5Pget_layout(creation) == H5D_VIRTUAL) {
    return "a virtual dataset, whose values are in other files; name those files instead of it";
  }
  if (H5Pget_external_count(creation) > 0) {
    return "its values are in external storage, not in an HDF5 file; copy them into one";
  }
  return "";
}

std::string filter_name(H5Z_filter_t id, unsigned level, const char* stored) {
  switch (id) {
    case H5Z_FILTER_DEFLATE:
      return fmt::format("gzip {}", level);
    case H5Z_FILTER_SHUFFLE:
      return "shuffle";
    case H5Z_FILTER_FLETCHER32:
      return "fletcher32";
    case H5Z_FILTER_SZIP:
      return "szip";
    default:
      return stored[0] != '\0' ? fmt::format("{} (filter {})", stored, id)
                               : fmt::format("filter {}", id);
  }
}

// IEEE half precision in either byte order.
bool is_half(hid_t type) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  return H5Tget_size(type) == 2 && H5Tget_precision(type) == 16 && H5Tget_offset(type) == 0 &&
         H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
         sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 &&
         mantissa_bits == 10 && H5Tget_ebias(type) == 15;
}

// Only layouts that programs write are accepted. Damage can make others, and with these the library
// has been seen to write beyond its buffers.
Hdf5Type type_of(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_INTEGER) {
    const std::size_t bytes = H5Tget_size(type);
    const bool plain =
        bytes <= 8 && H5Tget_precision(type) == 8 * bytes && H5Tget_offset(type) == 0;
    if (bytes == 1 && plain && H5Tget_sign(type) == H5T_SGN_NONE) return Hdf5Type::kByte;
    return plain ? Hdf5Type::kInteger : Hdf5Type::kOther;
  }
  if (kind != H5T_FLOAT) return Hdf5Type::kOther;
  if (H5Tequal(type, H5T_NATIVE_FLOAT) > 0) return Hdf5Type::kFloat32;
  if (H5Tequal(type, H5T_NATIVE_DOUBLE) > 0) return Hdf5Type::kFloat64;
  const bool swapped = H5Tequal(type, H5T_IEEE_F32BE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0;
  return swapped || is_half(type) ? Hdf5Type::kOtherFloat : Hdf5Type::kOther;
}

std::optional<std::vector<hsize_t>> space_shape(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) return std::nullopt;
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  if (rank > 0 && H5Sget_simple_extent_dims(space, shape.data(), nullptr) < 0) return std::nullopt;
  return shape;
}

}  // namespace

Result<Hdf5Dataset> Hdf5Dataset::open(const Hdf5Handle& file, const std::string& path,
                                      const std::string& name) {
  const Hdf5Lock lock;
  Hdf5Handle handle(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT));
  if (handle.valid()) return of(std::move(handle), path, name);
  return data_error(fmt::format("{}: dataset {}: cannot be opened: {}", path, name, hdf5_cause()));
}

Result<Hdf5Dataset> Hdf5Dataset::of(Hdf5Handle handle, const std::string& path,
                                    const std::string& name) {
  Hdf5Dataset dataset;
  dataset.file_ = path;
  dataset.name_ = name;
  dataset.handle_ = std::move(handle);
  RETURN_IF_ERROR(dataset.describe());
  return dataset;
}

std::uint64_t Hdf5Dataset::row_size() const {
  std::uint64_t size = 1;
  for (std::size_t i = 1; i < shape_.size(); ++i) size *= shape_[i];
  return size;
}

std::string Hdf5Dataset::type_text() const {
  const Hdf5Lock lock;
  const Hdf5Handle type(H5Dget_type(handle_.id()));
  const H5T_class_t kind = H5Tget_class(type.id());
  if (type_ == Hdf5Type::kOther && (kind == H5T_FLOAT || kind == H5T_INTEGER)) {
    return fmt::format("numbers of {} bytes in an unusual layout", element_bytes_);
  }
  switch (kind) {
    case H5T_FLOAT:
      return fmt::format("{}float{}", H5Tget_order(type.id()) == H5T_ORDER_BE ? "big-endian " : "",
                         8 * element_bytes_);
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type.id()) == H5T_SGN_NONE ? "u" : "",
                         8 * element_bytes_);
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound";
    default:
      return "other";
  }
}

std::string Hdf5Dataset::shape_text() const {
  return fmt::format("({}) {}", fmt::join(shape_, ", "), type_text());
}

Result<void> Hdf5Dataset::describe() {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Dget_space(handle_.id()));
  const Hdf5Handle type(H5Dget_type(handle_.id()));
  const Hdf5Handle creation(H5Dget_create_plist(handle_.id()));
  if (!space.valid() || !type.valid() || !creation.valid()) {
    return data_error(fmt::format("{}: cannot be described: {}", place(), hdf5_cause()));
  }
  const auto shape = space_shape(space.id());
  if (!shape) return data_error(fmt::format("{}: its shape cannot be read", place()));
  shape_.assign(shape->begin(), shape->end());
  // A damaged file can claim any shape. Products of extents must not wrap, or later checks would
  // see a small size.
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape_) {
    if (__builtin_mul_overflow(elements, std::max<std::uint64_t>(extent, 1), &elements) ||
        elements > std::numeric_limits<std::int64_t>::max() / 16) {
      return data_error(fmt::format("{}: a shape of ({}) is impossible; the file is damaged",
                                    place(), fmt::join(shape_, ", ")));
    }
  }
  RETURN_IF_ERROR(find_home());
  elsewhere_ = elsewhere_of(creation.id());
  type_ = type_of(type.id());
  element_bytes_ = H5Tget_size(type.id());
  stored_bytes_ = H5Dget_storage_size(handle_.id());
  if (H5Pget_layout(creation.id()) == H5D_CHUNKED) {
    std::array<hsize_t, H5S_MAX_RANK> chunk{};
    const int rank = H5Pget_chunk(creation.id(), H5S_MAX_RANK, chunk.data());
    if (rank != static_cast<int>(shape_.size())) {
      return data_error(fmt::format("{}: chunks of another rank; the file is damaged", place()));
    }
    chunk_.assign(chunk.begin(), chunk.begin() + rank);
  }
  const int filters = H5Pget_nfilters(creation.id());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::array<unsigned, 16> values{};
    std::size_t count = values.size();
    std::array<char, 64> name{};
    const H5Z_filter_t id = H5Pget_filter2(creation.id(), static_cast<unsigned>(i), &flags, &count,
                                           values.data(), name.size() - 1, name.data(), &config);
    if (id < 0) return data_error(fmt::format("{}: filter {} is unreadable", place(), i));
    filters_.push_back({id, filter_name(id, values[0], name.data())});
  }
  return {};
}

Result<void> Hdf5Dataset::find_home() {
  const Hdf5Handle file(H5Iget_file_id(handle_.id()));
  std::array<char, 4096> name{};
  hsize_t bytes = 0;
  if (H5Fget_name(handle_.id(), name.data(), name.size()) < 0 ||
      H5Fget_filesize(file.id(), &bytes) < 0) {
    return data_error(
        fmt::format("{}: the file it lies in cannot be told: {}", place(), hdf5_cause()));
  }
  home_ = name.data();
  home_bytes_ = bytes;
  return {};
}

Result<void> Hdf5Dataset::check_claims() const {
  if (!elsewhere_.empty()) return data_error(fmt::format("{}: {}", place(), elsewhere_));
  std::uint64_t chunk_elements = 1;
  for (const std::uint64_t extent : chunk_) {
    if (extent == 0 || __builtin_mul_overflow(chunk_elements, extent, &chunk_elements)) {
      return data_error(fmt::format("{}: impossible chunks; the file is damaged", place()));
    }
  }
  // A dataset cannot hold more bytes than its file times the best compression. This bounds every
  // allocation that follows its shape, before any is made.
  const std::optional<std::uint64_t> factor = expansion(filters_);
  const std::uint64_t room =
      factor ? home_bytes_ * *factor : std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t bytes = rows() * row_size() * element_bytes_;
  if (bytes > room) {
    return data_error(
        fmt::format("{}: {} needs {} bytes, more than a file of {} bytes can hold; it "
                    "is cut short or its writer was stopped",
                    place(), shape_text(), bytes, home_bytes_));
  }
  if (!chunk_.empty() && chunk_elements > std::min(room, kMaxChunkBytes) / element_bytes_) {
    return data_error(
        fmt::format("{}: its chunks of {} events are too large to read; rewrite it with chunks of "
                    "about 1 MiB",
                    place(), chunk_[0]));
  }
  return {};
}

// A dataset has its full shape before it is written, and the library reads fill values in place of
// what was never written.
Result<void> Hdf5Dataset::check_written() const {
  const Hdf5Lock lock;
  if (chunk_.empty()) {
    const std::uint64_t bytes = rows() * row_size() * element_bytes_;
    if (stored_bytes_ >= bytes) return {};
    return data_error(
        fmt::format("{}: only {} of its {} bytes were written; the file is cut short or its writer "
                    "was stopped",
                    place(), stored_bytes_, bytes));
  }
  const Hdf5Handle space(H5Dget_space(handle_.id()));
  RETURN_IF_ERROR(check_chunks(space.id()));
  std::uint64_t chunks = 1;
  for (std::size_t i = 0; i < shape_.size(); ++i) chunks *= (shape_[i] + chunk_[i] - 1) / chunk_[i];
  hsize_t written = 0;
  if (H5Dget_num_chunks(handle_.id(), space.id(), &written) < 0) {
    return data_error(fmt::format("{}: its chunks cannot be counted: {}", place(), hdf5_cause()));
  }
  if (written < chunks) {
    return data_error(
        fmt::format("{}: only {} of its {} chunks were written; the file is cut short or its "
                    "writer was stopped",
                    place(), written, chunks));
  }
  if (written > chunks) {
    return data_error(
        fmt::format("{}: it has {} chunks, but its shape needs {}; the file is damaged", place(),
                    written, chunks));
  }
  return {};
}

// The library takes the chunk's shape on trust, and reads beyond what a stored chunk holds. A chunk
// may have more rows than there can be, as where the dataset had none when it was made.
Result<void> Hdf5Dataset::check_chunks(hid_t space) const {
  std::array<hsize_t, H5S_MAX_RANK> most{};
  const int rank = H5Sget_simple_extent_dims(space, nullptr, most.data());
  CHECK(rank == static_cast<int>(chunk_.size()), "chunks of the dataset's rank");
  for (std::size_t i = 1; i < chunk_.size(); ++i) {
    if (chunk_[i] <= most[i]) continue;
    return data_error(
        fmt::format("{}: chunks of ({}), which are larger than it can become; the file is damaged",
                    place(), fmt::join(chunk_, ", ")));
  }
  return {};
}

Result<void> Hdf5Dataset::read_as(std::uint64_t first, std::uint64_t count, hid_t type,
                                  void* out) const {
  const Hdf5Lock lock;
  CHECK(!shape_.empty() && first <= shape_[0] && count <= shape_[0] - first, "rows out of range");
  if (count == 0 || row_size() == 0) return {};
  const Hdf5Handle space(H5Dget_space(handle_.id()));
  std::vector<hsize_t> start(shape_.size(), 0);
  std::vector<hsize_t> extent(shape_.begin(), shape_.end());
  start[0] = first;
  extent[0] = count;
  const Hdf5Handle memory(
      H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
  const bool selected = H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr,
                                            extent.data(), nullptr) >= 0;
  if (!selected || H5Dread(handle_.id(), type, memory.id(), space.id(), H5P_DEFAULT, out) < 0) {
    // A missing filter is the usual cause, and the library's own words for it do not name the
    // filter.
    const std::string cause = hdf5_cause();
    for (const Hdf5Filter& filter : filters_) {
      if (H5Zfilter_avail(filter.id) > 0) continue;
      return data_error(
          fmt::format("{}: it is stored with {}, which the HDF5 library here cannot "
                      "decode; rewrite it: h5repack -f GZIP=1 OLD.h5 NEW.h5 (where "
                      "that filter is installed)",
                      place(), filter.name));
    }
    return data_error(fmt::format("{}: rows {} to {} cannot be read: {}", place(), first,
                                  first + count - 1, cause));
  }
  return {};
}

Result<std::uint64_t> Hdf5Dataset::chunk_bytes(std::span<const std::uint64_t> offset) const {
  const Hdf5Lock lock;
  const std::vector<hsize_t> at(offset.begin(), offset.end());
  hsize_t size = 0;
  if (H5Dget_chunk_storage_size(handle_.id(), at.data(), &size) < 0 || size == 0) {
    return data_error(
        fmt::format("{}: the chunk of row {} was never written; the file is cut "
                    "short or its writer was stopped",
                    place(), offset[0]));
  }
  return size;
}

Result<std::uint32_t> Hdf5Dataset::read_chunk(std::span<const std::uint64_t> offset,
                                              std::span<std::byte> out) const {
  const Hdf5Lock lock;
  const std::vector<hsize_t> at(offset.begin(), offset.end());
  std::uint32_t mask = 0;
  if (H5Dread_chunk(handle_.id(), H5P_DEFAULT, at.data(), &mask, out.data()) < 0) {
    return data_error(fmt::format("{}: the chunk of row {} cannot be read: {}", place(), offset[0],
                                  hdf5_cause()));
  }
  return mask;
}

}  // namespace troupe::pipeline
