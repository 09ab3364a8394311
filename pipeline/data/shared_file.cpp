#include "pipeline/data/shared_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "runtime/base/disk.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Descriptor;
using runtime::Result;

namespace {

constexpr std::string_view kLock = ".lock";
// The names that belong to one file of a shared folder, besides its lock.
constexpr std::array<std::string_view, 4> kNames{"", ".origin", ".part", ".part.origin"};

std::string lock_path(const std::string& path) { return path + std::string(kLock); }

// True if the file that is open is the one at the path.
bool is_at(const Descriptor& file, const std::string& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(file.number(), &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

bool lock(const Descriptor& file, int how) {
  while (::flock(file.number(), how) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

struct Entry {
  std::string path;
  std::filesystem::file_time_type used;
  std::uint64_t bytes = 0;
};

Entry entry_at(const std::filesystem::path& locked) {
  std::error_code ignored;
  Entry entry{locked.string(), std::filesystem::last_write_time(locked, ignored), 0};
  entry.path.resize(entry.path.size() - kLock.size());
  for (const std::string_view name : kNames) {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(entry.path + std::string(name), missing);
    if (!missing) entry.bytes += bytes;
  }
  return entry;
}

// Those used longest ago first.
std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code cause;
  // Files come and go meanwhile.
  for (std::filesystem::recursive_directory_iterator each(folder, cause), end;
       !cause && each != end; each.increment(cause)) {
    if (each->path().extension() == kLock) entries.push_back(entry_at(each->path()));
  }
  std::ranges::sort(entries, {}, &Entry::used);
  return entries;
}

// False if somebody uses or makes it.
bool remove_unused(const Entry& entry) {
  const std::string place = lock_path(entry.path);
  const Descriptor turn(::open(place.c_str(), O_RDWR | O_CLOEXEC));
  if (!turn.is_open() || !lock(turn, LOCK_EX | LOCK_NB) || !is_at(turn, place)) return false;
  const Descriptor file(::open(entry.path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.is_open() ? !lock(file, LOCK_EX | LOCK_NB) : errno != ENOENT) return false;
  std::error_code ignored;
  for (const std::string_view name : kNames) {
    std::filesystem::remove(entry.path + std::string(name), ignored);
  }
  std::filesystem::remove(place, ignored);
  return true;
}

}  // namespace

Result<FileTurn> FileTurn::wait(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) RETURN_IF_ERROR(runtime::FileDisk().make_folder(folder));
  const std::string place = lock_path(path);
  for (;;) {
    Descriptor file(::open(place.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file.is_open()) return runtime::file_error("cannot create", place, errno);
    if (!lock(file, LOCK_EX)) return runtime::file_error("cannot lock", place, errno);
    // The process that had it before may have removed it.
    if (is_at(file, place)) return FileTurn(path, std::move(file));
  }
}

Result<Descriptor> FileTurn::use() const {
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return runtime::file_error("cannot open", path_, errno);
  if (!lock(file, LOCK_SH)) return runtime::file_error("cannot lock", path_, errno);
  if (::futimens(lock_.number(), nullptr) != 0) {
    return runtime::file_error("cannot mark as used", path_, errno);
  }
  return file;
}

void FileTurn::forget() const {
  std::error_code ignored;
  std::filesystem::remove(lock_path(path_), ignored);
}

Result<void> make_room(const FolderBound& bound, std::uint64_t more) {
  if (bound.bytes == 0) return {};
  std::uint64_t all = more;
  const std::vector<Entry> entries = entries_of(bound.folder);
  for (const Entry& entry : entries) all += entry.bytes;
  for (const Entry& entry : entries) {
    if (all <= bound.bytes) return {};
    if (entry.bytes > 0 && remove_unused(entry)) all -= entry.bytes;
  }
  if (all <= bound.bytes) return {};
  return data_error(fmt::format(
      "{}: {:.2f} MB in use{} are more than data.cache_limit, {:.2f} MB; raise it, or give "
      "data.train fewer files",
      bound.folder, static_cast<double>(all - more) / 1e6,
      more > 0 ? fmt::format(" and {:.2f} MB to come", static_cast<double>(more) / 1e6) : "",
      static_cast<double>(bound.bytes) / 1e6));
}

}  // namespace troupe::pipeline
