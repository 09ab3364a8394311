#include "runtime/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace troupe::runtime {

int exit_code(ErrorKind kind) { return static_cast<int>(kind); }

void check_failed(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s%s%.*s\n", file, line, condition,
               detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace troupe::runtime
