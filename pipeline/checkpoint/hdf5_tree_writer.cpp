#include <cstring>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "pipeline/checkpoint/hdf5_tree.h"

namespace troupe::pipeline {
namespace {

constexpr std::size_t kGrowBytes = 4u << 20;

std::int64_t product(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Hdf5Handle make_space(std::span<const std::int64_t> shape) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  return Hdf5Handle(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
}

Hdf5Handle text_type(const std::string& text) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), text.size() + 1);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return type;
}

}  // namespace

Hdf5TreeWriter::Hdf5TreeWriter(std::uint64_t user_block_bytes) {
  constexpr unsigned kOrder = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  const Hdf5Lock lock;
  group_properties_ = Hdf5Handle(H5Pcreate(H5P_GROUP_CREATE));
  H5Pset_link_creation_order(group_properties_.id(), kOrder);
  H5Pset_obj_track_times(group_properties_.id(), false);
  dataset_properties_ = Hdf5Handle(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(dataset_properties_.id(), false);
  const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE));
  H5Pset_link_creation_order(creation.id(), kOrder);
  H5Pset_obj_track_times(creation.id(), false);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  require(H5Pset_userblock(creation.id(), user_block_bytes) >= 0 &&
              H5Pset_fapl_core(access.id(), kGrowBytes, false) >= 0,
          "prepare a file in memory");
  file_ =
      Hdf5Handle(H5Fcreate(hdf5_memory_name().c_str(), H5F_ACC_TRUNC, creation.id(), access.id()));
  require(file_.valid(), "create a file in memory");
}

void Hdf5TreeWriter::require(bool success, const std::string& doing) {
  if (success || error_) return;
  error_ = runtime::Error{runtime::ErrorKind::kInternal,
                          fmt::format("HDF5 cannot {}: {}", doing, hdf5_cause())};
}

void Hdf5TreeWriter::add_group(const std::string& path) {
  if (path.empty() || path == "/" || !groups_.insert(path).second) return;
  add_parent(path);
  if (error_) return;
  const Hdf5Lock lock;
  const Hdf5Handle group(
      H5Gcreate2(file_.id(), path.c_str(), H5P_DEFAULT, group_properties_.id(), H5P_DEFAULT));
  require(group.valid(), "make group " + path);
}

void Hdf5TreeWriter::add_parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos) add_group(path.substr(0, slash));
}

void Hdf5TreeWriter::add_scalar(const std::string& object, const std::string& name, hid_t type,
                                const void* value) {
  if (error_) return;
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  const Hdf5Handle attribute(H5Acreate_by_name(file_.id(), object.c_str(), name.c_str(), type,
                                               space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  require(attribute.valid() && H5Awrite(attribute.id(), type, value) >= 0,
          fmt::format("write attribute {} of {}", name, object));
}

void Hdf5TreeWriter::add_attribute(const std::string& object, const std::string& name,
                                   std::uint64_t value) {
  const Hdf5Lock lock;
  add_scalar(object, name, H5T_NATIVE_UINT64, &value);
}

void Hdf5TreeWriter::add_attribute(const std::string& object, const std::string& name,
                                   std::uint32_t value) {
  const Hdf5Lock lock;
  add_scalar(object, name, H5T_NATIVE_UINT32, &value);
}

void Hdf5TreeWriter::add_attribute(const std::string& object, const std::string& name,
                                   double value) {
  const Hdf5Lock lock;
  add_scalar(object, name, H5T_NATIVE_DOUBLE, &value);
}

void Hdf5TreeWriter::add_attribute(const std::string& object, const std::string& name,
                                   const std::string& value) {
  const Hdf5Lock lock;
  add_scalar(object, name, text_type(value).id(), value.c_str());
}

void Hdf5TreeWriter::add_values(const std::string& path, hid_t space, hid_t type,
                                const void* values) {
  add_parent(path);
  if (error_) return;
  const Hdf5Handle dataset(H5Dcreate2(file_.id(), path.c_str(), type, space, H5P_DEFAULT,
                                      dataset_properties_.id(), H5P_DEFAULT));
  require(
      dataset.valid() && H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
      "write dataset " + path);
}

void Hdf5TreeWriter::add_dataset(const std::string& path, std::span<const std::int64_t> shape,
                                 std::span<const float> values) {
  CHECK(product(shape) == static_cast<std::int64_t>(values.size()), path);
  const Hdf5Lock lock;
  add_values(path, make_space(shape).id(), H5T_NATIVE_FLOAT, values.data());
}

void Hdf5TreeWriter::add_dataset(const std::string& path, std::span<const std::int64_t> shape,
                                 std::span<const std::int16_t> values) {
  CHECK(product(shape) == static_cast<std::int64_t>(values.size()), path);
  const Hdf5Lock lock;
  add_values(path, make_space(shape).id(), H5T_NATIVE_INT16, values.data());
}

void Hdf5TreeWriter::add_text(const std::string& path, const std::string& text) {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  add_values(path, space.id(), text_type(text).id(), text.c_str());
}

runtime::Result<runtime::Buffer> Hdf5TreeWriter::image(std::size_t offset) {
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
