#pragma once

// One dataset of an HDF5 file: its description, its values and its raw chunks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

enum class Hdf5Type : std::uint8_t {
  kFloat32,     // as the machine has it
  kFloat64,     // as the machine has it
  kOtherFloat,  // half precision or the other byte order: the library converts
  kByte,        // 8 bits without a sign
  kInteger,     // of 1 to 8 bytes, all of whose bits count: the library converts
  kOther,
};

struct Hdf5Filter {
  H5Z_filter_t id = 0;
  std::string name;  // "gzip 4", "shuffle", "lzf", "filter 32015"
};

// One dataset, described when it was opened.
class Hdf5Dataset {
 public:
  // `file` is open for reading and need not stay so; `path` is for messages. An Error (kData) if
  // `name` leads to no dataset or its description makes no sense.
  static runtime::Result<Hdf5Dataset> open(const Hdf5Handle& file, const std::string& path,
                                           const std::string& name);
  // The same of a dataset that is open already.
  static runtime::Result<Hdf5Dataset> of(Hdf5Handle dataset, const std::string& path,
                                         const std::string& name);

  const std::string& name() const { return name_; }
  // The file it lies in. An external link makes this another file than the one that was opened.
  const std::string& home() const { return home_; }
  // "/data/a.h5: dataset ECAL", the start of every message about it.
  std::string place() const { return file_ + ": dataset " + name_; }
  const std::vector<std::uint64_t>& shape() const { return shape_; }
  std::uint64_t rows() const { return shape_.empty() ? 1 : shape_[0]; }
  // Elements of one row.
  std::uint64_t row_size() const;
  Hdf5Type type() const { return type_; }
  std::size_t element_bytes() const { return element_bytes_; }
  std::string type_text() const;
  // "(1000, 25, 25, 25) float32"
  std::string shape_text() const;
  // Empty when the dataset is one contiguous (or compact) piece.
  const std::vector<std::uint64_t>& chunk() const { return chunk_; }
  const std::vector<Hdf5Filter>& filters() const { return filters_; }
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  // An Error if its values are in other files than home(), or if home() cannot hold its size or
  // that of its chunks. Call it before allocating anything as large as the dataset claims to be.
  runtime::Result<void> check_claims() const;
  // Before the library decodes: an Error where values were never written, for which it would give
  // fill values, or where the chunks cannot be those of the shape.
  runtime::Result<void> check_written() const;

  // Rows [first, first + count), converted by the library; out has count x row_size() elements.
  template <class T>
  runtime::Result<void> read_rows(std::uint64_t first, std::uint64_t count, T* out) const {
    const Hdf5Lock lock;
    return read_as(first, count, hdf5_type<T>(), out);
  }
  // How many bytes the chunk whose first element stands at `offset` takes in the file. An Error
  // where it was never written.
  runtime::Result<std::uint64_t> chunk_bytes(std::span<const std::uint64_t> offset) const;
  // Those bytes, filters still applied except those whose bit is set in the mask returned; `out`
  // has room for chunk_bytes().
  runtime::Result<std::uint32_t> read_chunk(std::span<const std::uint64_t> offset,
                                            std::span<std::byte> out) const;

 private:
  runtime::Result<void> describe();
  runtime::Result<void> find_home();
  runtime::Result<void> check_chunks(hid_t space) const;
  runtime::Result<void> read_as(std::uint64_t first, std::uint64_t count, hid_t type,
                                void* out) const;

  std::string file_;
  std::string name_;
  std::string home_;
  std::uint64_t home_bytes_ = 0;
  std::string elsewhere_;  // what it is and what to do where its values are in other files
  Hdf5Handle handle_;
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint64_t> chunk_;
  std::vector<Hdf5Filter> filters_;
  Hdf5Type type_ = Hdf5Type::kOther;
  std::size_t element_bytes_ = 0;
  std::uint64_t stored_bytes_ = 0;
};

}  // namespace troupe::pipeline
