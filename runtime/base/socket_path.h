#pragma once

// The path of a local socket that is to listen.

#include <string>

#include "runtime/base/error.h"

namespace troupe::runtime {

// Succeeds if a socket may be put at the path: nothing is there, or a socket that a killed process
// left behind. ZeroMQ removes any file at the path, so callers ask first. Errors (kUsage) say what
// is there and what to do, and leave the path to the caller.
Result<void> check_socket_path(const std::string& path);

}  // namespace troupe::runtime
