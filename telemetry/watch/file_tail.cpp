#include "telemetry/watch/file_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::telemetry {
namespace {

constexpr std::size_t kReadPiece = std::size_t{1} << 20;

}  // namespace

FileTail::FileTail(std::string path, std::uint64_t from_end)
    : path_(std::move(path)), from_end_(from_end) {}

// A file is the same as long as it keeps its number and is no shorter than what was read of it.
bool FileTail::look(const Reader& reader) {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) return false;
  const auto size = static_cast<std::uint64_t>(now.st_size);
  const bool same =
      file_.is_open() && now.st_dev == device_ && now.st_ino == inode_ && size >= offset_;
  size_ = size;
  written_ =
      static_cast<double>(now.st_mtim.tv_sec) + 1e-9 * static_cast<double>(now.st_mtim.tv_nsec);
  if (same) return true;
  // The file that was read stays open until here, so that no other file can have its number.
  runtime::Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return false;
  const bool had_one = file_.is_open();
  file_ = std::move(file);
  if (::fstat(file_.number(), &now) != 0) return false;
  device_ = now.st_dev;
  inode_ = now.st_ino;
  offset_ = left_out_ = 0;
  line_.clear();
  skips_ = false;
  if (!had_one && size > from_end_) {
    offset_ = size - from_end_;
    skips_ = true;  // it begins amid a line
  }
  if (had_one) reader.anew();
  return true;
}

bool FileTail::read_some(const Reader& reader) {
  if (!look(reader)) return false;
  std::vector<char> piece(std::min<std::uint64_t>(kReadPiece, size_ - offset_));
  if (piece.empty()) return false;
  const ssize_t count =
      ::pread(file_.number(), piece.data(), piece.size(), static_cast<off_t>(offset_));
  if (count <= 0) return false;
  offset_ += static_cast<std::uint64_t>(count);
  take({piece.data(), static_cast<std::size_t>(count)}, reader);
  return offset_ < size_;
}

// A line that is too long is counted once, and skipped up to its end.
void FileTail::take(std::string_view bytes, const Reader& reader) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (!skips_) line_.append(part);
    if (line_.size() > kLongestLine) {
      skips_ = true;
      ++left_out_;
      line_.clear();
    }
    if (end == std::string_view::npos) return;
    if (!skips_) reader.line(line_);
    skips_ = false;
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
}

}  // namespace troupe::telemetry
