#pragma once

// HDF5 files with groups, composed in memory and read from memory. Groups keep the order in which
// their members were made, and no times are stored: the same calls make the same bytes.
//
// Both ends remember the first failure and ignore what is asked of them after it, so that a
// sequence of calls is checked once at its end. One thread per object; other users of the library
// are kept out by Hdf5Lock.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

class Hdf5TreeWriter {
 public:
  // The image will stand behind `user_block_bytes` (0, 512, 1024, ...) of the caller's own.
  explicit Hdf5TreeWriter(std::uint64_t user_block_bytes);

  // Makes the groups of "a/b/c" that do not exist yet, as do the calls below for theirs.
  void add_group(const std::string& path);
  // To an existing object, "/" being the root. Texts are ended by a NUL.
  void add_attribute(const std::string& object, const std::string& name, std::uint64_t value);
  void add_attribute(const std::string& object, const std::string& name, std::uint32_t value);
  void add_attribute(const std::string& object, const std::string& name, double value);
  void add_attribute(const std::string& object, const std::string& name, const std::string& value);
  // Contiguous; values.size() is the product of the shape.
  void add_dataset(const std::string& path, std::span<const std::int64_t> shape,
                   std::span<const float> values);
  void add_dataset(const std::string& path, std::span<const std::int64_t> shape,
                   std::span<const std::int16_t> values);
  void add_text(const std::string& path, const std::string& text);

  // The file's bytes, to stand at `offset` of the Buffer, whose first `offset` bytes are zero.
  // kInternal when anything failed since the beginning: out of memory, or two things of one path.
  runtime::Result<runtime::Buffer> image(std::size_t offset);

 private:
  void add_values(const std::string& path, hid_t space, hid_t type, const void* values);
  void add_scalar(const std::string& object, const std::string& name, hid_t type,
                  const void* value);
  void add_parent(const std::string& path);
  void require(bool success, const std::string& doing);

  Hdf5Handle file_;
  Hdf5Handle group_properties_;
  Hdf5Handle dataset_properties_;
  std::set<std::string> groups_;
  std::optional<runtime::Error> error_;
};

// A dataset found in a file.
struct Hdf5TreeEntry {
  std::string path;  // from the group that was asked for: "conv1/kernel"
  std::vector<std::int64_t> shape;
  std::int64_t size() const;
};

// Reads no more than the file has room for: a file that claims more is refused before anything is
// allocated for it. The library itself withstands damage less well. A caller that verifies a hash
// of the image first keeps damage, though not malice, away from it.
class Hdf5TreeReader {
 public:
  // `name` is the file's, for messages.
  Hdf5TreeReader(std::span<const std::byte> image, std::string name);

  // Text up to the first NUL. A failed call leaves the value as it was.
  void read_attribute(const std::string& object, const std::string& attribute,
                      std::uint64_t& value);
  void read_attribute(const std::string& object, const std::string& attribute,
                      std::uint32_t& value);
  void read_attribute(const std::string& object, const std::string& attribute, double& value);
  void read_attribute(const std::string& object, const std::string& attribute, std::string& value);
  void read_text(const std::string& path, std::string& text);
  // All datasets below a group, in the order in which groups and datasets were made.
  std::vector<Hdf5TreeEntry> entries(const std::string& group);
  // Appends the elements of a dataset of exactly this type, contiguous as it was written.
  void read(const std::string& path, std::vector<float>& values);
  void read(const std::string& path, std::vector<std::int16_t>& values);

  // The first failure, as kData; a caller may add its own by fail().
  runtime::Result<void> result() const;
  void fail(const std::string& what);

 private:
  bool spend(std::uint64_t bytes);
  Hdf5Handle open_attribute(const std::string& object, const std::string& attribute);
  void read_scalar(const std::string& object, const std::string& attribute, hid_t type,
                   void* value);
  template <class T>
  void append(const std::string& path, hid_t type, std::vector<T>& values);

  std::string name_;
  std::uint64_t unread_bytes_;  // of the file, as far as what was read could stand in it
  Hdf5Handle file_;
  std::optional<runtime::Error> error_;
};

}  // namespace troupe::pipeline
