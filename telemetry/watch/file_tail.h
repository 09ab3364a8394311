#pragma once

// Reads a file of lines as somebody else appends to it.

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
  // Reads only about the last `from_end` bytes of a file that is there
  // already.
  explicit FileTail(std::string path, std::uint64_t from_end = UINT64_MAX);

  struct Reader {
    std::function<void(std::string_view)> line;  // whole ones, without their end
    // The file was replaced or cut, so what was read is gone. All of it is read anew.
    std::function<void()> anew;
  };
  // Reads about a megabyte of what is new. True: there may be more. A file that is not there, or
  // cannot be read, has nothing new.
  bool read_some(const Reader& reader);

  std::uint64_t bytes_read() const { return offset_; }
  std::uint64_t bytes() const { return size_; }
  // How many lines of the file, as it is now, were left out because they exceed kLongestLine.
  std::uint64_t left_out() const { return left_out_; }
  // When the file was last written, in seconds since 1970. 0: there is none.
  double written() const { return written_; }

  static constexpr std::size_t kLongestLine = std::size_t{4} << 20;

 private:
  // Opens the file where there is another one than before. False: there is none to read.
  bool look(const Reader& reader);
  void take(std::string_view bytes, const Reader& reader);

  std::string path_;
  std::uint64_t from_end_;
  runtime::Descriptor file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t offset_ = 0, size_ = 0, left_out_ = 0;
  double written_ = 0.0;
  std::string line_;    // the line that has no end yet
  bool skips_ = false;  // the rest of a line that is left out
};

}  // namespace troupe::telemetry
