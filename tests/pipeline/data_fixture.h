#pragma once

// HDF5 files for the tests of datasets.

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {

std::vector<std::byte> file_bytes(const std::string& path);
void write_file(const std::string& path, const std::vector<std::byte>& bytes);

enum class StoredType { kFloat32, kFloat64, kBigEndian, kHalf, kInteger, kByte };

// How a dataset is stored.
struct StorageLayout {
  std::vector<hsize_t> chunk = {};  // empty: contiguous
  bool shuffle = false;
  int gzip = 0;
  bool fletcher = false;
  bool nbit = false;  // a filter of which nothing is known here
  StoredType type = StoredType::kFloat32;
  bool grown = false;  // made without rows, and then given those that are the most it can have
};

// Writes datasets straight through the HDF5 library, as other programs would.
class Hdf5Scribe {
 public:
  explicit Hdf5Scribe(const std::string& path);
  ~Hdf5Scribe();
  Hdf5Scribe(const Hdf5Scribe&) = delete;
  Hdf5Scribe& operator=(const Hdf5Scribe&) = delete;

  void add(const std::string& name, std::vector<hsize_t> shape, const std::vector<float>& values,
           const StorageLayout& layout = {});
  // The same, with room for more rows than `values` has; the chunks of the others are never
  // written.
  void add_unfinished(const std::string& name, std::vector<hsize_t> shape,
                      const std::vector<float>& values, const StorageLayout& layout);
  void add_text(const std::string& name, std::size_t rows);
  // A dataset that shows all of the one with the same name in another file.
  void add_virtual(const std::string& name, const std::vector<hsize_t>& shape,
                   const std::string& source);
  // Leads to the dataset with the same name in another file.
  void add_link(const std::string& name, const std::string& source);
  void attribute(const std::string& name, double value);

 private:
  hid_t file_;
};

// A small lcd-fixed file: `events` images of 3 x 4 x 5 cells and a target.
struct SmallData {
  static constexpr std::size_t kCells = 60;

  std::size_t events = 20;
  StorageLayout images;
  std::vector<float> cells;   // [events][60]
  std::vector<float> target;  // [events][2]

  explicit SmallData(std::size_t events, std::uint64_t seed = 1);
  void write(const std::string& path) const;
};

}  // namespace troupe::pipeline
