#pragma once

// Replaces operator new of the test program it is linked into by one that can fail.

#include <cstddef>

namespace troupe::telemetry {

// The next request of `least` to `most` bytes by any other thread finds no memory.
void fail_once(std::size_t least, std::size_t most);
// Whether it has.
bool has_failed();

}  // namespace troupe::telemetry
