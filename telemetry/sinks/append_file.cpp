#include "telemetry/sinks/append_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// add() writes when so much waits.
constexpr std::size_t kWriteAt = 256u << 10;

std::string cause(int error) { return std::generic_category().message(error); }

}  // namespace

Result<AppendFile> AppendFile::open(AppendFileOptions options) {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (options.fresh ? O_EXCL : 0);
  runtime::Descriptor file(::open(options.path.c_str(), flags, 0644));
  if (!file.is_open()) {
    return Error{ErrorKind::kData, fmt::format("cannot open {}: {}", options.path, cause(errno))};
  }
  return AppendFile(std::move(options), std::move(file));
}

AppendFile::~AppendFile() {
  if (file_.is_open()) write_what_waits();
}

void AppendFile::add(std::string_view record) {
  if (waiting_.size() + record.size() > options_.limit) {
    ++dropped_;
    return;
  }
  waiting_ += record;
  // A full disk is tried again at flush(), not for every record.
  if (waiting_.size() >= kWriteAt && failure_ == 0) failure_ = write_what_waits();
}

// Returns 0, or the errno for which not all was written.
int AppendFile::write_what_waits() {
  std::size_t written = 0;
  int failure = 0;
  while (written < waiting_.size() && failure == 0) {
    const ssize_t count =
        ::write(file_.number(), waiting_.data() + written, waiting_.size() - written);
    if (count > 0) written += static_cast<std::size_t>(count);
    if (count == 0) failure = ENOSPC;
    if (count < 0 && errno != EINTR) failure = errno;
  }
  waiting_.erase(0, written);
  return failure;
}

Result<void> AppendFile::flush() {
  failure_ = write_what_waits();
  if (failure_ == std::exchange(reported_, failure_) || failure_ == 0) return {};
  return Error{ErrorKind::kData,
               fmt::format("cannot write {}: {}; up to {} KiB wait in memory and are written when "
                           "that is over, what comes besides is left out",
                           options_.path, cause(failure_), options_.limit >> 10)};
}

bool AppendFile::vanished() const {
  struct stat status = {};
  return ::fstat(file_.number(), &status) == 0 && status.st_nlink == 0;
}

}  // namespace troupe::telemetry
