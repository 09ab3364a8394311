#pragma once

// The reason why the library does not open a file, as far as the file itself and its lock tell.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::pipeline {

// Two statements of the superblock ("HDF5 File Format Specification", section II.A).
struct Hdf5Superblock {
  // Set while a program has the file open for writing. A program that was stopped leaves it set.
  // Only versions from 3 on have it.
  bool being_written = false;
  std::uint64_t end_of_file = 0;  // bytes that the file must have
};

// `bytes` begin with the signature. Nothing if they hold no superblock of versions 0 to 3.
std::optional<Hdf5Superblock> read_superblock(std::span<const std::byte> bytes);

// For a file that the library has refused to open, or in which it has found no signature. "" if the
// file does not tell why: then it is damaged, or no HDF5 file.
std::string why_not_opened(const std::string& path);

}  // namespace troupe::pipeline
