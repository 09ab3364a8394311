#pragma once

// The path of a local socket that listens, or is to.

#include <sys/types.h>

#include <string>

#include "runtime/base/error.h"

namespace troupe::runtime {

// Succeeds if a socket may be put at the path: nothing is there, or a socket that a killed process
// left behind. ZeroMQ removes any file at the path, so callers ask first. Errors (kUsage) say what
// is there and what to do, and leave the path to the caller.
Result<void> check_socket_path(const std::string& path);

// The file of a socket that listens in this process. It goes with this object, unless another
// process has put a socket of its own in its place. ZeroMQ leaves it behind.
class SocketFile {
 public:
  // The path of an endpoint "ipc://PATH" that was bound just now. Other endpoints have no file.
  explicit SocketFile(const std::string& endpoint);
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

 private:
  std::string path_;  // "": there is none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace troupe::runtime
