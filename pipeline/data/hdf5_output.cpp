#include "pipeline/data/hdf5_output.h"

#include <fmt/format.h>

namespace troupe::pipeline {

using runtime::Buffer;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kGrowBytes = 16u << 20;

// Call it under the Hdf5Lock of the failed call.
Error failed(const std::string& doing) {
  return {ErrorKind::kInternal, fmt::format("HDF5 cannot {}: {}", doing, hdf5_cause())};
}

Hdf5Handle make_space(std::span<const std::uint64_t> shape) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  return Hdf5Handle(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
}

Hdf5Handle make_creation_list() {
  Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(list.id(), false);
  return list;
}

}  // namespace

Result<Hdf5Output> Hdf5Output::create() {
  const Hdf5Lock lock;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  if (H5Pset_fapl_core(access.id(), kGrowBytes, false) < 0) return failed("work in memory");
  Hdf5Output output;
  output.file_ =
      Hdf5Handle(H5Fcreate(hdf5_memory_name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()));
  if (!output.file_.valid()) return failed("create a file in memory");
  return output;
}

Result<void> Hdf5Output::write_attribute(const std::string& name, hid_t type, const void* value) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  const Hdf5Handle attribute(
      H5Acreate2(file_.id(), name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute.valid() || H5Awrite(attribute.id(), type, value) < 0) {
    return failed("write attribute " + name);
  }
  return {};
}

Result<void> Hdf5Output::add_attribute(const std::string& name, double value) {
  const Hdf5Lock lock;
  return write_attribute(name, H5T_NATIVE_DOUBLE, &value);
}

Result<void> Hdf5Output::add_attribute(const std::string& name, std::uint64_t value) {
  const Hdf5Lock lock;
  return write_attribute(name, H5T_NATIVE_UINT64, &value);
}

Result<void> Hdf5Output::add_attribute(const std::string& name, const std::string& value) {
  const Hdf5Lock lock;
  const Hdf5Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), value.size() + 1);
  return write_attribute(name, type.id(), value.c_str());
}

Result<void> Hdf5Output::add_values(const std::string& name, std::span<const std::uint64_t> shape,
                                    hid_t type, const void* values) {
  const Hdf5Handle space = make_space(shape);
  const Hdf5Handle list = make_creation_list();
  const Hdf5Handle dataset(
      H5Dcreate2(file_.id(), name.c_str(), type, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT));
  if (!dataset.valid() || H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
    return failed("write dataset " + name);
  }
  return {};
}

Result<void> Hdf5Output::add_dataset(const std::string& name, std::span<const std::uint64_t> shape,
                                     std::span<const float> values) {
  const Hdf5Lock lock;
  return add_values(name, shape, H5T_NATIVE_FLOAT, values.data());
}

Result<void> Hdf5Output::add_dataset(const std::string& name, std::span<const std::uint64_t> shape,
                                     std::span<const double> values) {
  const Hdf5Lock lock;
  return add_values(name, shape, H5T_NATIVE_DOUBLE, values.data());
}

Result<Hdf5ChunkedOutput> Hdf5Output::add_chunked(const std::string& name,
                                                  std::span<const std::uint64_t> shape,
                                                  std::span<const std::uint64_t> chunk,
                                                  int gzip_level) {
  const Hdf5Lock lock;
  const Hdf5Handle space = make_space(shape);
  const Hdf5Handle list = make_creation_list();
  const std::vector<hsize_t> extents(chunk.begin(), chunk.end());
  H5Pset_chunk(list.id(), static_cast<int>(extents.size()), extents.data());
  if (gzip_level > 0) H5Pset_deflate(list.id(), static_cast<unsigned>(gzip_level));
  Hdf5ChunkedOutput dataset{Hdf5Handle(H5Dcreate2(file_.id(), name.c_str(), H5T_NATIVE_FLOAT,
                                                  space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT)),
                            name};
  if (!dataset.handle.valid()) return failed("create dataset " + name);
  return dataset;
}

Result<void> Hdf5Output::write_chunk(const Hdf5ChunkedOutput& dataset,
                                     std::span<const std::uint64_t> offset,
                                     std::span<const std::byte> bytes) {
  const Hdf5Lock lock;
  const std::vector<hsize_t> at(offset.begin(), offset.end());
  if (H5Dwrite_chunk(dataset.handle.id(), H5P_DEFAULT, 0, at.data(), bytes.size(), bytes.data()) <
      0) {
    return failed("write a chunk of dataset " + dataset.name);
  }
  return {};
}

Result<Buffer> Hdf5Output::image() {
  const Hdf5Lock lock;
  if (H5Fflush(file_.id(), H5F_SCOPE_LOCAL) < 0) return failed("complete the file");
  const ssize_t bytes = H5Fget_file_image(file_.id(), nullptr, 0);
  if (bytes <= 0) return failed("hand out the file");
  Buffer image = Buffer::allocate(static_cast<std::size_t>(bytes));
  if (H5Fget_file_image(file_.id(), image.mutable_data(), image.size()) != bytes) {
    return failed("hand out the file");
  }
  return image;
}

}  // namespace troupe::pipeline
