#pragma once

// An HDF5 file with groups, as Hdf5Writer or Keras makes it, read from memory.
//
// A reader remembers its first failure and ignores all calls after it, so that a sequence of calls
// is checked once at its end. One thread per reader; Hdf5Lock keeps out other users of the library.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "pipeline/data/hdf5_handle.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

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
  template <class T>
  requires std::is_arithmetic_v<T>
  void read_attribute(const std::string& object, const std::string& attribute, T& value) {
    const Hdf5Lock lock;
    read_scalar(object, attribute, hdf5_type<T>(), &value);
  }
  void read_attribute(const std::string& object, const std::string& attribute, std::string& value);
  // A list of texts of a fixed size, as h5py stores byte strings.
  void read_attribute(const std::string& object, const std::string& attribute,
                      std::vector<std::string>& values);
  bool has_attribute(const std::string& object, const std::string& attribute) const;
  // Whether there is an object of this path, each group of which exists.
  bool contains(const std::string& path) const;
  // None: there is no dataset of this path, or its size cannot be counted.
  std::optional<std::vector<std::int64_t>> shape(const std::string& path) const;
  void read_text(const std::string& path, std::string& text);
  // All datasets below a group, in the order in which groups and datasets were made, which not
  // every file tells.
  std::vector<Hdf5TreeEntry> entries(const std::string& group);
  // Appends the elements of a dataset of exactly this type, contiguous as it was written.
  template <class T>
  void read(const std::string& path, std::vector<T>& values);

  // The first failure, as kData; a caller may add its own by fail().
  runtime::Result<void> result() const;
  void fail(const std::string& what);

 private:
  bool spend(std::uint64_t bytes);
  Hdf5Handle open_attribute(const std::string& object, const std::string& attribute);
  void read_scalar(const std::string& object, const std::string& attribute, hid_t type,
                   void* value);

  std::string name_;
  std::uint64_t unread_bytes_;  // of the file, as far as what was read could stand in it
  Hdf5Handle file_;
  std::optional<runtime::Error> error_;
};

}  // namespace troupe::pipeline
