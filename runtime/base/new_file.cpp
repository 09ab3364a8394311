#include "runtime/base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>

#include <fmt/format.h>

namespace troupe::runtime {
namespace {

// The parts of files that are being written. It outlives the threads that write them.
struct Unfinished {
  std::mutex mutex;
  std::set<std::string> parts;
};
Unfinished& unfinished() {
  static auto* const all = new Unfinished;
  return *all;
}

// Whether the path is still that of the open file, and not of one that another process began.
bool is_path_of(const std::string& path, const Descriptor& file) {
  struct stat ours = {}, there = {};
  return ::fstat(file.number(), &ours) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

// The end of a chain of links, which need not exist yet; without links the path itself.
Result<std::string> file_behind(const std::string& path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::filesystem::path file = path;
  std::error_code cause;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(file, cause); ++i) {
    file = file.parent_path() / std::filesystem::read_symlink(file, cause);
  }
  const auto status = std::filesystem::symlink_status(file, cause);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Error{ErrorKind::kData, fmt::format("cannot replace {}: it is no file", path)};
  }
  return file.string();
}

}  // namespace

Error file_error(std::string_view doing, const std::string& path, int cause) {
  if (is_out_of_descriptors(cause)) return out_of_descriptors(ErrorKind::kData, path);
  return Error{ErrorKind::kData,
               fmt::format("{} {}: {}", doing, path, std::generic_category().message(cause))};
}

// A file at the temporary name is a remainder of ours, or a link that someone has put there.
Result<NewFile> NewFile::create(const std::string& path) {
  ASSIGN_OR_RETURN(std::string behind, file_behind(path));
  NewFile made(std::move(behind), Descriptor());
  const std::string part = made.part();
  const std::scoped_lock lock(unfinished().mutex);
  ::unlink(part.c_str());
  made.file_ = Descriptor(::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!made.file_.is_open()) return file_error("cannot create", part, errno);
  unfinished().parts.insert(part);
  return made;
}

NewFile::~NewFile() {
  if (!file_.is_open()) return;
  const std::scoped_lock lock(unfinished().mutex);
  if (is_path_of(part(), file_)) ::unlink(part().c_str());
  unfinished().parts.erase(part());
}

void NewFile::give_up_all() {
  unfinished().mutex.lock();  // for good
  for (const std::string& part : unfinished().parts) ::unlink(part.c_str());
}

Result<void> NewFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return file_error("cannot write", part(), errno);
    }
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> NewFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got =
        ::pread(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return file_error("cannot read", part(), errno);
    }
    if (got == 0) {
      std::memset(bytes.data(), 0, bytes.size());
      return {};
    }
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<void> NewFile::resize(std::uint64_t bytes) {
  if (::ftruncate(file_.number(), static_cast<off_t>(bytes)) == 0) return {};
  return file_error("cannot write", part(), errno);
}

Result<void> NewFile::finish() {
  if (::fsync(file_.number()) != 0) return file_error("cannot write", part(), errno);
  {
    const std::scoped_lock lock(unfinished().mutex);
    if (!is_path_of(part(), file_)) {
      return Error{ErrorKind::kData,
                   fmt::format("{}: another process has begun to write it, too", path_)};
    }
    if (::rename(part().c_str(), path_.c_str()) != 0) {
      return file_error("cannot rename to", path_, errno);
    }
    file_.close();
    unfinished().parts.erase(part());
  }
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const Descriptor opened(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open() || ::fsync(opened.number()) != 0) {
    return file_error("cannot flush the folder of", path_, errno);
  }
  return {};
}

}  // namespace troupe::runtime
