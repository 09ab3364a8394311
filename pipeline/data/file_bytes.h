#pragma once

// The bytes of a file that is read by offset. One that gzip has packed is unpacked into memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Movable; any thread reads.
class FileBytes {
 public:
  // Asked once, with the first kHead bytes of what is unpacked, or all of them if there are fewer:
  // how many bytes the content has by its own words. Unpacking ends one byte behind these, so that
  // a file that claims little takes little memory, whatever it holds. 0: it does not say.
  using Claim = std::function<std::uint64_t(std::span<const std::byte> head)>;
  static constexpr std::size_t kHead = 64;
  static constexpr std::uint64_t kMostUnpackedBytes = std::uint64_t{8} << 30;

  // Errors (kData): no file, none that may be read, a gzip file that is damaged or cut short, one
  // that unpacks to, or claims, more than `most` bytes or than there is memory for.
  static runtime::Result<FileBytes> open(const std::string& path, const Claim& claim = {},
                                         std::uint64_t most = kMostUnpackedBytes);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // It was packed, and all of it is in memory.
  bool is_unpacked() const { return unpacked_; }
  // [offset, offset + out.size()), which lies inside the file (CHECKed). An Error (kData) if the
  // file has become shorter or cannot be read.
  runtime::Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  runtime::Result<void> unpack(const Claim& claim, std::uint64_t ceiling);

  std::string path_;
  std::uint64_t size_ = 0;
  bool unpacked_ = false;
  runtime::Descriptor file_;
  std::vector<std::byte> memory_;
};

// True if the bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> head);

// The first bytes of a file, kHead at most; those of its content where gzip has packed it. Empty if
// it cannot be read as a file.
std::vector<std::byte> head_of(const std::string& path);

}  // namespace troupe::pipeline
