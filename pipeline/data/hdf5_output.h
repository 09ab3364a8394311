#pragma once

// An HDF5 file composed in memory and then written through runtime::Disk. The library does not
// recover from a full disk, so it never touches the disk. The memory needed is the size of the
// file, twice while image() runs. No times are stored: the same calls make the same bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// A chunked float32 dataset whose chunks the caller filters itself.
struct Hdf5ChunkedOutput {
  Hdf5Handle handle;
  std::string name;
};

class Hdf5Output {
 public:
  // Errors of all functions are kInternal: out of memory or a misuse that the library refuses.
  static runtime::Result<Hdf5Output> create();

  // Attributes of the root.
  runtime::Result<void> add_attribute(const std::string& name, double value);
  runtime::Result<void> add_attribute(const std::string& name, std::uint64_t value);
  runtime::Result<void> add_attribute(const std::string& name, const std::string& value);

  // A contiguous dataset; values.size() is the product of the shape.
  runtime::Result<void> add_dataset(const std::string& name, std::span<const std::uint64_t> shape,
                                    std::span<const float> values);
  runtime::Result<void> add_dataset(const std::string& name, std::span<const std::uint64_t> shape,
                                    std::span<const double> values);

  // gzip_level 0: the chunks are plain; else they are deflated (chunk_codec.h).
  runtime::Result<Hdf5ChunkedOutput> add_chunked(const std::string& name,
                                                 std::span<const std::uint64_t> shape,
                                                 std::span<const std::uint64_t> chunk,
                                                 int gzip_level);
  // `bytes` as filtered, of the chunk whose first element stands at `offset`; a chunk that reaches
  // beyond the shape is whole all the same.
  runtime::Result<void> write_chunk(const Hdf5ChunkedOutput& dataset,
                                    std::span<const std::uint64_t> offset,
                                    std::span<const std::byte> bytes);

  // The bytes of the file.
  runtime::Result<runtime::Buffer> image();

 private:
  runtime::Result<void> add_values(const std::string& name, std::span<const std::uint64_t> shape,
                                   hid_t type, const void* values);
  runtime::Result<void> write_attribute(const std::string& name, hid_t type, const void* value);

  Hdf5Handle file_;
};

}  // namespace troupe::pipeline
