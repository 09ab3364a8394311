#pragma once

// Where a local socket is to listen.

#include <string>

#include "runtime/base/error.h"

namespace troupe::runtime {

// Whether a socket may be put at the path: nothing is there, or a socket that a process left behind
// when it was killed. ZeroMQ removes whatever is there, so callers ask first. Errors (kUsage) say
// what is there and what to do, and leave the path to the caller.
Result<void> check_socket_path(const std::string& path);

}  // namespace troupe::runtime
