#pragma once

// An HDF5 file composed in memory and then written through runtime::Disk. The library does not
// recover from a full disk, so it never touches the disk. The memory needed is the size of the
// file, twice while image() runs. No times are stored: the same calls make the same bytes.
//
// A writer remembers its first failure and ignores all calls after it, so that a sequence of calls
// is checked once at its end. One thread per writer; Hdf5Lock keeps out other users of the library.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// A chunked float dataset whose chunks the caller filters itself.
struct Hdf5Chunked {
  std::string path;
  Hdf5Handle handle;
};

class Hdf5Writer {
 public:
  using Shape = std::span<const std::int64_t>;
  enum class Order : std::uint8_t { kByName, kAsMade };

  // `order`: that in which groups list their members. The image will stand behind
  // `user_block_bytes` (0, 512, 1024, ...) of the caller's own.
  explicit Hdf5Writer(Order order, std::uint64_t user_block_bytes = 0);

  // Makes the groups of "a/b/c" that do not exist yet, as do the calls below for theirs.
  void add_group(const std::string& path);
  // To an existing object, "/" being the root. Texts are ended by a NUL.
  template <class T>
  requires std::is_arithmetic_v<T>
  void add_attribute(const std::string& object, const std::string& name, T value) {
    const Hdf5Lock lock;
    add_scalar(object, name, hdf5_type<T>(), &value);
  }
  void add_attribute(const std::string& object, const std::string& name, const std::string& value);
  // `values`: a vector or a span of numbers. Contiguous; values.size() is the product of the shape.
  void add_dataset(const std::string& path, Shape shape, const auto& values) {
    const Hdf5Lock lock;
    using T = std::remove_cvref_t<decltype(values[0])>;
    add_values(path, space_of(shape), values.size(), hdf5_type<T>(), values.data());
  }
  void add_text(const std::string& path, const std::string& text);
  // gzip_level 0: the chunks are plain; else they are deflated (chunk_codec.h).
  Hdf5Chunked add_chunked(const std::string& path, Shape shape, Shape chunk, int gzip_level);
  // `bytes` as filtered, of the chunk whose first element stands at `offset`; a chunk that reaches
  // beyond the shape is whole all the same.
  void write_chunk(const Hdf5Chunked& dataset, Shape offset, std::span<const std::byte> bytes);

  // The first failure: kInternal, for want of memory or two things of one path.
  runtime::Result<void> result() const;
  // The file's bytes, to stand at `offset` of the Buffer, whose first `offset` bytes are zero.
  runtime::Result<runtime::Buffer> image(std::size_t offset = 0);

 private:
  static Hdf5Handle space_of(Shape shape);
  void add_values(const std::string& path, const Hdf5Handle& space, std::size_t size, hid_t type,
                  const void* values);
  void add_scalar(const std::string& object, const std::string& name, hid_t type,
                  const void* value);
  void add_parent(const std::string& path);
  void require(bool success, const std::string& doing);

  Hdf5Handle file_;
  Hdf5Handle group_properties_;
  std::set<std::string> groups_;
  std::optional<runtime::Error> error_;
};

}  // namespace troupe::pipeline
