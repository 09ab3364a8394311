#pragma once

// A file of lines that somebody else appends to, read as it grows.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/descriptor.h"

namespace troupe::telemetry {

// One thread.
class FileTail {
 public:
  // `from_end`: of a file that is there at first, only about so many bytes are read.
  explicit FileTail(std::string path, std::uint64_t from_end = UINT64_MAX);

  struct Reader {
    std::function<void(std::string_view)> line;  // whole ones, without their end
    // What was read is no longer there: the file was replaced or cut, and all of it follows.
    std::function<void()> anew;
  };
  // Reads some of what is new, about a megabyte; whether there may be more. A file that is not
  // there, or cannot be read, has nothing new.
  bool read_some(const Reader& reader);

  std::uint64_t bytes_read() const { return offset_; }
  std::uint64_t bytes() const { return size_; }
  // Lines of more than kLongestLine bytes, which were left out of the file as it is now.
  std::uint64_t left_out() const { return left_out_; }
  // Seconds since 1970 at which the file was last written; 0: there is none.
  double written() const { return written_; }

  static constexpr std::size_t kLongestLine = std::size_t{4} << 20;

 private:
  // Whether there is a file to read from.
  bool look(const Reader& reader);
  void take(std::string_view bytes, const Reader& reader);

  std::string path_;
  std::uint64_t from_end_;
  runtime::Descriptor file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t offset_ = 0, size_ = 0, left_out_ = 0;
  double written_ = 0.0;
  std::string line_;    // that has no end yet
  bool skips_ = false;  // the rest of a line that is left out
};

}  // namespace troupe::telemetry
