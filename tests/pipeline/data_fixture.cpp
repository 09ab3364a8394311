#include "tests/pipeline/data_fixture.h"

#include <gtest/gtest.h>

#include <fstream>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

Hdf5Handle make_type(StoredType type) {
  switch (type) {
    case StoredType::kFloat32:
      return Hdf5Handle(H5Tcopy(H5T_NATIVE_FLOAT));
    case StoredType::kFloat64:
      return Hdf5Handle(H5Tcopy(H5T_NATIVE_DOUBLE));
    case StoredType::kBigEndian:
      return Hdf5Handle(H5Tcopy(H5T_IEEE_F32BE));
    case StoredType::kInteger:
      return Hdf5Handle(H5Tcopy(H5T_NATIVE_INT));
    case StoredType::kByte:
      return Hdf5Handle(H5Tcopy(H5T_NATIVE_UINT8));
    case StoredType::kHalf:
      break;
  }
  Hdf5Handle half(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(half.id(), 15, 10, 5, 0, 10);
  H5Tset_size(half.id(), 2);
  H5Tset_ebias(half.id(), 15);
  return half;
}

}  // namespace

std::vector<std::byte> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  CHECK(file.good(), path);
}

Hdf5Scribe::Hdf5Scribe(const std::string& path) {
  const Hdf5Lock lock;
  file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(file_ >= 0, path);
}

Hdf5Scribe::~Hdf5Scribe() {
  const Hdf5Lock lock;
  H5Fclose(file_);
}

void Hdf5Scribe::add(const std::string& name, std::vector<hsize_t> shape,
                     const std::vector<float>& values, const StorageLayout& layout) {
  add_unfinished(name, std::move(shape), values, layout);
}

void Hdf5Scribe::add_unfinished(const std::string& name, std::vector<hsize_t> shape,
                                const std::vector<float>& values, const StorageLayout& layout) {
  const Hdf5Lock lock;
  const int rank = static_cast<int>(shape.size());
  const Hdf5Handle space(H5Screate_simple(rank, shape.data(), nullptr));
  std::vector<hsize_t> first = shape;
  if (layout.grown) first[0] = 0;
  const Hdf5Handle made(H5Screate_simple(rank, first.data(), shape.data()));
  const Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE));
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.id(), 1);
  H5Pset_obj_track_times(list.id(), false);
  if (!layout.chunk.empty()) {
    H5Pset_chunk(list.id(), static_cast<int>(layout.chunk.size()), layout.chunk.data());
  }
  if (layout.shuffle) H5Pset_shuffle(list.id());
  if (layout.gzip > 0) H5Pset_deflate(list.id(), static_cast<unsigned>(layout.gzip));
  if (layout.fletcher) H5Pset_fletcher32(list.id());
  if (layout.nbit) H5Pset_nbit(list.id());
  const Hdf5Handle type = make_type(layout.type);
  const Hdf5Handle dataset(
      H5Dcreate2(file_, name.c_str(), type.id(), made.id(), links.id(), list.id(), H5P_DEFAULT));
  CHECK(dataset.valid(), name);
  if (layout.grown) CHECK(H5Dset_extent(dataset.id(), shape.data()) >= 0, name);
  std::size_t row = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) row *= shape[i];
  std::vector<hsize_t> start(shape.size(), 0);
  std::vector<hsize_t> count = shape;
  count[0] = values.size() / row;
  const Hdf5Handle memory(H5Screate_simple(rank, count.data(), nullptr));
  H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  CHECK(H5Dwrite(dataset.id(), H5T_NATIVE_FLOAT, memory.id(), space.id(), H5P_DEFAULT,
                 values.data()) >= 0,
        name);
}

void Hdf5Scribe::add_text(const std::string& name, std::size_t rows) {
  const Hdf5Lock lock;
  const hsize_t extent = rows;
  const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr));
  const Hdf5Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), 8);
  const Hdf5Handle dataset(H5Dcreate2(file_, name.c_str(), type.id(), space.id(), H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT));
  const std::vector<char> text(rows * 8, 'x');
  CHECK(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) >= 0);
}

void Hdf5Scribe::add_virtual(const std::string& name, const std::vector<hsize_t>& shape,
                             const std::string& source) {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_virtual(list.id(), space.id(), source.c_str(), name.c_str(), space.id());
  const Hdf5Handle dataset(H5Dcreate2(file_, name.c_str(), H5T_NATIVE_FLOAT, space.id(),
                                      H5P_DEFAULT, list.id(), H5P_DEFAULT));
  CHECK(dataset.valid(), name);
}

void Hdf5Scribe::add_link(const std::string& name, const std::string& source) {
  const Hdf5Lock lock;
  CHECK(H5Lcreate_external(source.c_str(), name.c_str(), file_, name.c_str(), H5P_DEFAULT,
                           H5P_DEFAULT) >= 0,
        name);
}

void Hdf5Scribe::attribute(const std::string& name, double value) {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  const Hdf5Handle attribute(
      H5Acreate2(file_, name.c_str(), H5T_NATIVE_DOUBLE, space.id(), H5P_DEFAULT, H5P_DEFAULT));
  CHECK(H5Awrite(attribute.id(), H5T_NATIVE_DOUBLE, &value) >= 0);
}

SmallData::SmallData(std::size_t count, std::uint64_t seed) : events(count) {
  const runtime::RandomPosition position{.seed = seed};
  std::uint32_t drawn = 0;
  for (std::size_t i = 0; i < events * kCells; ++i) {
    // A third of the cells are empty.
    const double u = runtime::random_uniform(position, drawn++);
    cells.push_back(u < 1.0 / 3 ? 0.0f : static_cast<float>(u));
  }
  for (std::size_t i = 0; i < events; ++i) {
    target.push_back(11.0f);
    target.push_back(static_cast<float>(10 + i));
  }
}

void SmallData::write(const std::string& path) const {
  Hdf5Scribe file(path);
  file.add("ECAL", {events, 3, 4, 5}, cells, images);
  file.add("target", {events, 2}, target);
}

}  // namespace troupe::pipeline
