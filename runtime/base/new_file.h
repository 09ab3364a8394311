#pragma once

// A file that is written in pieces, and stands at its path whole or not at all.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::runtime {

// One thread at a time. Errors are kData and name the path and the cause.
class NewFile {
 public:
  // Begins "PATH.part" beside the path, and removes what was there, the remainder of a process that
  // was killed. A link is followed. An error if something else but a file is at the path.
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  // Removes the part unless finish() has made it the file.
  ~NewFile();

  // Bytes between two pieces are zero.
  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);
  // What was written; behind the end, zeros.
  Result<void> read(std::uint64_t offset, std::span<std::byte> bytes) const;
  // Cuts it, or lengthens it by zeros.
  Result<void> resize(std::uint64_t bytes);

  // Puts it in the place of a file at the path, so that a crash at any moment leaves either the old
  // file or the new one: fsync, rename, fsync of the folder. After an error the old file stands,
  // except that after the last fsync has failed the new one stands, but might not outlive a crash.
  // Where another process has begun to write the file since, that one's stands in the end.
  Result<void> finish();

  // Removes the parts of all files that are not finished, and lets none be begun or finished: for a
  // process that ends at once, whatever its other threads do.
  static void give_up_all();

 private:
  NewFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string part() const { return path_ + ".part"; }

  std::string path_;
  Descriptor file_;  // open until it is finished
};

// An Error (kData) of what was done with a file; `cause` is an errno.
Error file_error(std::string_view doing, const std::string& path, int cause);

}  // namespace troupe::runtime
