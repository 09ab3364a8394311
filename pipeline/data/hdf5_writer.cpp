#include "pipeline/data/hdf5_writer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace troupe::pipeline {
namespace {

constexpr std::size_t kGrowBytes = 4u << 20;

std::vector<hsize_t> extents(Hdf5Writer::Shape shape) { return {shape.begin(), shape.end()}; }

Hdf5Handle text_type(const std::string& text) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), text.size() + 1);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return type;
}

// Marks a list of properties of groups. The root's are those of the file.
void keep_order(const Hdf5Handle& properties) {
  H5Pset_link_creation_order(properties.id(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  H5Pset_obj_track_times(properties.id(), false);
}

}  // namespace

Hdf5Handle Hdf5Writer::space_of(Shape shape) {
  const std::vector<hsize_t> all = extents(shape);
  return Hdf5Handle(H5Screate_simple(static_cast<int>(all.size()), all.data(), nullptr));
}

Hdf5Handle Hdf5Writer::dataset_properties() {
  Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(properties.id(), false);
  return properties;
}

Hdf5Writer::Hdf5Writer(Order order, std::uint64_t user_block_bytes) {
  const Hdf5Lock lock;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  require(H5Pset_fapl_core(access.id(), kGrowBytes, false) >= 0, "prepare a file in memory");
  create(order, user_block_bytes, access);
}

Hdf5Writer::Hdf5Writer(Order order, runtime::NewFile& file)
    : target_(std::make_unique<Hdf5NewFile>(Hdf5NewFile{.file = &file})) {
  const Hdf5Lock lock;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  require(write_into(*target_, access), "prepare a file");
  create(order, 0, access);
}

void Hdf5Writer::create(Order order, std::uint64_t user_block_bytes, const Hdf5Handle& access) {
  group_properties_ = Hdf5Handle(H5Pcreate(H5P_GROUP_CREATE));
  const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE));
  if (order == Order::kAsMade) {
    keep_order(group_properties_);
    keep_order(creation);
  }
  require(H5Pset_userblock(creation.id(), user_block_bytes) >= 0, "prepare a file");
  file_ =
      Hdf5Handle(H5Fcreate(hdf5_memory_name().c_str(), H5F_ACC_TRUNC, creation.id(), access.id()));
  require(file_.valid(), "create a file");
}

// Under the lock of the call that failed.
void Hdf5Writer::require(bool success, const std::string& doing) {
  if (success || error_) return;
  error_ = runtime::Error{runtime::ErrorKind::kInternal,
                          fmt::format("HDF5 cannot {}: {}", doing, hdf5_cause())};
}

runtime::Result<void> Hdf5Writer::result() const {
  if (target_ != nullptr && target_->failure) return *target_->failure;
  if (error_) return *error_;
  return {};
}

runtime::Result<void> Hdf5Writer::close() {
  {
    const Hdf5Lock lock;
    require(file_.close(), "finish a file");
  }
  return result();
}

void Hdf5Writer::add_group(const std::string& path) {
  if (path.empty() || path == "/" || !groups_.insert(path).second) return;
  add_parent(path);
  if (error_) return;
  const Hdf5Lock lock;
  const Hdf5Handle group(
      H5Gcreate2(file_.id(), path.c_str(), H5P_DEFAULT, group_properties_.id(), H5P_DEFAULT));
  require(group.valid(), "make group " + path);
}

void Hdf5Writer::add_parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos) add_group(path.substr(0, slash));
}

void Hdf5Writer::add_scalar(const std::string& object, const std::string& name, hid_t type,
                            const void* value) {
  add_values_of_attribute(object, name, type, Hdf5Handle(H5Screate(H5S_SCALAR)), value);
}

void Hdf5Writer::add_values_of_attribute(const std::string& object, const std::string& name,
                                         hid_t type, const Hdf5Handle& space, const void* values) {
  if (error_) return;
  const Hdf5Handle attribute(H5Acreate_by_name(file_.id(), object.c_str(), name.c_str(), type,
                                               space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  require(attribute.valid() && H5Awrite(attribute.id(), type, values) >= 0,
          fmt::format("write attribute {} of {}", name, object));
}

void Hdf5Writer::add_attribute(const std::string& object, const std::string& name,
                               const std::vector<std::string>& values) {
  const Hdf5Lock lock;
  std::size_t longest = 1;
  for (const std::string& value : values) longest = std::max(longest, value.size());
  std::string all;
  for (const std::string& value : values) all += value + std::string(longest - value.size(), '\0');
  const Hdf5Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), longest);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  const auto count = static_cast<std::int64_t>(values.size());
  add_values_of_attribute(object, name, type.id(), space_of(std::span(&count, 1)), all.data());
}

void Hdf5Writer::add_attribute(const std::string& object, const std::string& name,
                               const std::string& value) {
  const Hdf5Lock lock;
  add_scalar(object, name, text_type(value).id(), value.c_str());
}

void Hdf5Writer::add_values(const std::string& path, const Hdf5Handle& space, std::size_t size,
                            hid_t type, const void* values) {
  CHECK(H5Sget_simple_extent_npoints(space.id()) == static_cast<hssize_t>(size), path);
  add_parent(path);
  if (error_) return;
  const Hdf5Handle dataset(H5Dcreate2(file_.id(), path.c_str(), type, space.id(), H5P_DEFAULT,
                                      dataset_properties().id(), H5P_DEFAULT));
  require(
      dataset.valid() && H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
      "write dataset " + path);
}

void Hdf5Writer::add_text(const std::string& path, const std::string& text) {
  const Hdf5Lock lock;
  add_values(path, Hdf5Handle(H5Screate(H5S_SCALAR)), 1, text_type(text).id(), text.c_str());
}

Hdf5Target Hdf5Writer::add_target(const std::string& path, Shape shape, hid_t type,
                                  const Hdf5Handle& properties) {
  add_parent(path);
  if (error_) return {};
  Hdf5Target dataset{
      path, Hdf5Handle(H5Dcreate2(file_.id(), path.c_str(), type, space_of(shape).id(), H5P_DEFAULT,
                                  properties.id(), H5P_DEFAULT))};
  require(dataset.handle.valid(), "create dataset " + path);
  return dataset;
}

Hdf5Target Hdf5Writer::add_chunked(const std::string& path, Shape shape, Shape chunk,
                                   int gzip_level) {
  const Hdf5Lock lock;
  const Hdf5Handle properties = dataset_properties();
  H5Pset_chunk(properties.id(), static_cast<int>(chunk.size()), extents(chunk).data());
  if (gzip_level > 0) H5Pset_deflate(properties.id(), static_cast<unsigned>(gzip_level));
  return add_target(path, shape, H5T_NATIVE_FLOAT, properties);
}

void Hdf5Writer::write_values(const Hdf5Target& dataset, std::uint64_t first, std::size_t size,
                              hid_t type, const void* values) {
  if (error_ || size == 0) return;
  const Hdf5Handle space(H5Dget_space(dataset.handle.id()));
  std::vector<hsize_t> count(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.id())));
  H5Sget_simple_extent_dims(space.id(), count.data(), nullptr);
  std::vector<hsize_t> start(count.size(), 0);
  start[0] = first;
  count[0] = 1;
  const auto row = std::accumulate(count.begin(), count.end(), hsize_t{1}, std::multiplies<>());
  count[0] = size / row;
  CHECK(count[0] * row == size, dataset.path);
  const Hdf5Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
  require(
      H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr) >= 0 &&
          H5Dwrite(dataset.handle.id(), type, memory.id(), space.id(), H5P_DEFAULT, values) >= 0,
      "write rows of dataset " + dataset.path);
}

void Hdf5Writer::write_chunk(const Hdf5Target& dataset, Shape offset,
                             std::span<const std::byte> bytes) {
  const Hdf5Lock lock;
  if (error_) return;
  require(H5Dwrite_chunk(dataset.handle.id(), H5P_DEFAULT, 0, extents(offset).data(), bytes.size(),
                         bytes.data()) >= 0,
          "write a chunk of dataset " + dataset.path);
}

runtime::Result<runtime::Buffer> Hdf5Writer::image(std::size_t offset) {
  const Hdf5Lock lock;
  ssize_t size = -1;
  if (!error_ && H5Fflush(file_.id(), H5F_SCOPE_GLOBAL) >= 0) {
    size = H5Fget_file_image(file_.id(), nullptr, 0);
  }
  require(size >= 0, "finish a file in memory");
  if (error_) return *error_;
  // The image begins behind the user block, which the library leaves to the caller.
  runtime::Buffer bytes = runtime::Buffer::allocate(offset + static_cast<std::size_t>(size));
  std::memset(bytes.mutable_data(), 0, offset);
  require(H5Fget_file_image(file_.id(), bytes.mutable_data() + offset,
                            static_cast<std::size_t>(size)) == size,
          "copy a file in memory");
  if (error_) return *error_;
  return bytes;
}

}  // namespace troupe::pipeline
