#pragma once

// The error where the system gives no memory.

#include "runtime/base/error.h"

namespace troupe::runtime {

// The error in the place of a std::bad_alloc. kTopology: what was asked for is too large for here.
inline Error no_memory() {
  return {ErrorKind::kTopology,
          "there is no memory left; smaller micro-batches and fewer workers or threads take less, "
          "and 'ulimit -v' (address space) may allow more"};
}

}  // namespace troupe::runtime
