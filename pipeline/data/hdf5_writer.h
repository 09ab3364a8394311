#pragma once

// An HDF5 file that is made, in memory or piece by piece in a runtime::NewFile. In memory it takes
// its size, twice while image() runs; in a file it takes a few MB, however large that becomes. No
// times are stored: the same calls make the same bytes.
//
// A writer remembers its first failure and ignores all calls after it, so that a sequence of calls
// is checked once at its end. One thread per writer; Hdf5Lock keeps out other users of the library.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "pipeline/data/hdf5_handle.h"
#include "pipeline/data/hdf5_new_file.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// A dataset that is written in parts.
struct Hdf5Target {
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

  // Writes into `file`, which outlives it, and for which the caller calls finish().
  Hdf5Writer(Order order, runtime::NewFile& file);

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
  // A list of texts of one fixed size, as h5py makes it of a list of byte strings. None is empty.
  void add_attribute(const std::string& object, const std::string& name,
                     const std::vector<std::string>& values);
  // `values`: a vector or a span of numbers. Contiguous; values.size() is the product of the shape.
  void add_dataset(const std::string& path, Shape shape, const auto& values) {
    const Hdf5Lock lock;
    using T = std::remove_cvref_t<decltype(values[0])>;
    add_values(path, space_of(shape), values.size(), hdf5_type<T>(), values.data());
  }
  void add_text(const std::string& path, const std::string& text);
  // A dataset of floats whose chunks the caller filters itself.
  // gzip_level 0: the chunks are plain; else they are deflated (chunk_codec.h).
  Hdf5Target add_chunked(const std::string& path, Shape shape, Shape chunk, int gzip_level);
  // `bytes` as filtered, of the chunk whose first element stands at `offset`; a chunk that reaches
  // beyond the shape is whole all the same.
  void write_chunk(const Hdf5Target& dataset, Shape offset, std::span<const std::byte> bytes);

  // A contiguous dataset, whose rows write_rows() writes.
  template <class T>
  Hdf5Target add_rows(const std::string& path, Shape shape) {
    const Hdf5Lock lock;
    return add_target(path, shape, hdf5_type<T>(), dataset_properties());
  }
  // `values`: whole rows, the first of which is `first`.
  template <class T>
  void write_rows(const Hdf5Target& dataset, std::uint64_t first, const std::vector<T>& values) {
    const Hdf5Lock lock;
    write_values(dataset, first, values.size(), hdf5_type<T>(), values.data());
  }

  // The first failure: kInternal, for want of memory or two things of one path; kData, of the file
  // that is written into.
  runtime::Result<void> result() const;
  // Ends writing into a file; no Hdf5Target is left. As result().
  runtime::Result<void> close();
  // The file's bytes, to stand at `offset` of the Buffer, whose first `offset` bytes are zero.
  runtime::Result<runtime::Buffer> image(std::size_t offset = 0);

 private:
  static Hdf5Handle space_of(Shape shape);
  static Hdf5Handle dataset_properties();
  // Creates the file; `access`: where.
  void create(Order order, std::uint64_t user_block_bytes, const Hdf5Handle& access);
  Hdf5Target add_target(const std::string& path, Shape shape, hid_t type,
                        const Hdf5Handle& properties);
  void write_values(const Hdf5Target& dataset, std::uint64_t first, std::size_t size, hid_t type,
                    const void* values);
  void add_values(const std::string& path, const Hdf5Handle& space, std::size_t size, hid_t type,
                  const void* values);
  void add_scalar(const std::string& object, const std::string& name, hid_t type,
                  const void* value);
  void add_values_of_attribute(const std::string& object, const std::string& name, hid_t type,
                               const Hdf5Handle& space, const void* values);
  void add_parent(const std::string& path);
  void require(bool success, const std::string& doing);

  std::unique_ptr<Hdf5NewFile> target_;  // null: in memory
  Hdf5Handle file_;
  Hdf5Handle group_properties_;
  std::set<std::string> groups_;
  std::optional<runtime::Error> error_;
};

}  // namespace troupe::pipeline
