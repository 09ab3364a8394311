#pragma once

// A folder for the sockets of the processes of one run on this host, or for a run that leaves
// nothing.

#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Only this user can enter it. It is removed with the object. A process that is killed leaves it,
// and the next one that makes a folder at the same place removes it. A lock tells whether the owner
// lives, not its number, which another process may have by then.
class SocketFolder {
 public:
  // In `parent`, which is a folder where this user may write. Errors (kUsage) name it and TMPDIR.
  static runtime::Result<SocketFolder> make(const std::string& parent);
  // In the folder that TMPDIR names, or /tmp.
  static runtime::Result<SocketFolder> make();

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const { return path_; }
  // Where the head listens.
  std::string address() const;

 private:
  SocketFolder(std::string path, runtime::Descriptor lock);

  std::string path_;  // "": moved from
  runtime::Descriptor lock_;
};

}  // namespace troupe::launch
