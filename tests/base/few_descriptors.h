#pragma once

// A process that may have few files and sockets open.

#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/error.h"

namespace troupe::runtime {

// While it lives, the process may have so many descriptors more than it has. A sanitizer needs one
// itself to look at an object's type.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    CHECK(::getrlimit(RLIMIT_NOFILE, &before_) == 0, "no limit");
    // The lowest free number is where the next one goes.
    const int next = ::dup(0);
    CHECK(next >= 0, "no descriptors");
    ::close(next);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next + more);
    CHECK(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit stays");
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace troupe::runtime
