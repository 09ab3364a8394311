#pragma once

// Limits of this process, as a poor system has them.

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "runtime/base/error.h"

namespace troupe {

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

// While it lives, the process may write so many bytes to one file; writing beyond it fails, as on a
// full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uint64_t bytes) : previous_(std::signal(SIGXFSZ, SIG_IGN)) {
    CHECK(::getrlimit(RLIMIT_FSIZE, &before_) == 0, "no limit");
    const rlimit limit{bytes, before_.rlim_max};
    CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "the limit stays");
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, previous_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*previous_)(int);
};

}  // namespace troupe
