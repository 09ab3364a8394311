#pragma once

// Files of a folder that several processes and runs share. One process makes a file while the
// others wait; files in use stay, and those used longest ago go where a folder has a bound.

#include <cstdint>
#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The right to make, replace or judge the file at a path: one process has it at a time. It stands
// in "PATH.lock". Movable.
class FileTurn {
 public:
  // Waits for its turn; makes the folder. Errors are kData and name the path.
  static runtime::Result<FileTurn> wait(const std::string& path);

  // Marks the file as used now. While what is returned is open, make_room() leaves the file there.
  runtime::Result<runtime::Descriptor> use() const;
  // Removes the lock, for a path outside of shared folders.
  void forget() const;

 private:
  FileTurn(std::string path, runtime::Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  runtime::Descriptor lock_;
};

// The bytes that a folder may hold in files with a FileTurn and in what lies beside these.
struct FolderBound {
  std::string folder;
  std::uint64_t bytes = 0;  // 0: no bound
};

// Removes files that nobody uses or makes, those used longest ago first, until `more` bytes fit
// into the folder. Errors (kData): they do not fit, with what would help.
runtime::Result<void> make_room(const FolderBound& bound, std::uint64_t more);

}  // namespace troupe::pipeline
