#include "launch/folder/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/disk.h"

namespace troupe::launch {
namespace {

using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Error cannot(const char* what, const std::string& path) {
  return {ErrorKind::kData,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno))};
}

}  // namespace

Result<LineFile> LineFile::open(const std::string& path, bool goes_on,
                                const std::function<void(std::string_view line)>& take) {
  std::size_t whole = 0;
  if (goes_on) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', whole)) {
      take(std::string_view(text).substr(whole, end - whole));
      whole = end + 1;
    }
  }
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open() || ::fchmod(file.number(), 0600) != 0) return cannot("open", path);
  if (::ftruncate(file.number(), static_cast<off_t>(whole)) != 0) return cannot("write", path);
  return LineFile(path, std::move(file));
}

Result<void> LineFile::put_back() const {
  const std::scoped_lock lock(*mutex_);
  return runtime::put_back(file_.number(), path_);
}

// A line that could be written in part only is taken back, or the next one would be glued to it.
Result<void> LineFile::add(const std::string& line) {
  const std::scoped_lock lock(*mutex_);
  const std::string text = (torn_ ? "\n" : "") + line + "\n";
  const ssize_t written = ::write(file_.number(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) {
    torn_ = false;
    return {};
  }
  const int why = written < 0 ? errno : ENOSPC;
  if (written > 0) {
    const off_t end = ::lseek(file_.number(), 0, SEEK_CUR);
    if (end < written || ::ftruncate(file_.number(), end - written) != 0) torn_ = true;
  }
  errno = why;
  return cannot("write", path_);
}

Result<void> LineFile::add_for_good(const std::string& line) {
  RETURN_IF_ERROR(add(line));
  return ::fdatasync(file_.number()) == 0 ? Result<void>{} : cannot("write", path_);
}

}  // namespace troupe::launch
