#include "runtime/base/disk.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/new_file.h"

namespace troupe::runtime {
namespace {

// 0 or the errno of the write that failed.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

// The same of the write or fsync that failed.
int write_all_and_sync(int descriptor, std::span<const std::byte> bytes) {
  if (const int cause = write_all(descriptor, bytes); cause != 0) return cause;
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

// Only regular files: opening a pipe would wait for its writer.
Result<Descriptor> open_to_read(const std::string& path, struct stat& status) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return file_error("cannot open", path, errno);
  if (::fstat(file.number(), &status) != 0) return file_error("cannot read", path, errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorKind::kData, path + " is not a regular file"};
  return file;
}

}  // namespace

Result<void> FileDisk::replace(const std::string& path, std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(NewFile file, NewFile::create(path));
  RETURN_IF_ERROR(file.write(0, bytes));
  return file.finish();
}

Result<Buffer> FileDisk::read(const std::string& path) {
  struct stat status {};
  ASSIGN_OR_RETURN(const Descriptor file, open_to_read(path, status));
  std::optional<Buffer> room = Buffer::try_allocate(static_cast<std::size_t>(status.st_size));
  if (!room) {
    return Error{
        ErrorKind::kData,
        fmt::format("cannot read {}: its {} bytes do not fit into memory", path, status.st_size)};
  }
  Buffer buffer = std::move(*room);
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = ::read(file.number(), buffer.mutable_data() + done, buffer.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("cannot read", path, errno);
    if (got == 0) return Error{ErrorKind::kData, path + " became shorter while it was read"};
    done += static_cast<std::size_t>(got);
  }
  return buffer;
}

Result<void> FileDisk::remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return file_error("cannot remove", path, errno);
  return {};
}

Result<std::vector<std::string>> FileDisk::list(const std::string& folder) {
  std::error_code cause;
  std::filesystem::directory_iterator entries(folder, cause);
  if (cause) return file_error("cannot list", folder, cause.value());
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> FileDisk::make_folder(const std::string& folder) {
  std::error_code cause;
  std::filesystem::create_directories(folder, cause);
  if (cause) return file_error("cannot create folder", folder, cause.value());
  return {};
}

Result<std::string> read_file(const std::string& path, std::size_t most) {
  struct stat status {};
  ASSIGN_OR_RETURN(const Descriptor file, open_to_read(path, status));
  auto text = read_text(file, most + 1);
  if (!text.ok())
    return Error{ErrorKind::kData, fmt::format("cannot read {}: {}", path, text.error().message)};
  if (text->size() > most) {
    return Error{ErrorKind::kData, fmt::format("{} holds more than {} bytes", path, most)};
  }
  return text;
}

Result<std::string> read_text(const Descriptor& file, std::size_t most) {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  std::string text;
  while (text.size() < most) {
    const std::size_t size = text.size();
    text.resize(std::min(size + kPiece, most));
    const ssize_t count = ::read(file.number(), text.data() + size, text.size() - size);
    const int cause = count < 0 ? errno : 0;
    text.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) break;
    if (cause == EAGAIN) {
      pollfd readable{file.number(), POLLIN, 0};
      ::poll(&readable, 1, -1);
    } else if (cause != 0 && cause != EINTR) {
      return Error{ErrorKind::kData, std::generic_category().message(cause)};
    }
  }
  return text;
}

Result<void> write_new_file(const std::string& path, std::string_view text, mode_t mode) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open()) return file_error("cannot create", path, errno);
  const int cause = write_all_and_sync(file.number(), std::as_bytes(std::span(text)));
  if (cause == 0) return {};
  ::unlink(path.c_str());
  return file_error("cannot write", path, cause);
}

// dup3() comes last: it makes the number that others hold lead to the copy, and until then an error
// leaves the old file in its place. The reads do not move its position.
Result<void> put_back(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return file_error("cannot copy to", path, errno);
  struct stat found {};
  const bool is_there = ::lstat(path.c_str(), &found) == 0 && found.st_dev == status.st_dev &&
                        found.st_ino == status.st_ino;
  if (is_there) return {};
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
  const Descriptor copy(::open(path.c_str(), flags, status.st_mode & 0777));
  if (!copy.is_open()) return file_error("cannot create", path, errno);
  std::vector<std::byte> block(std::size_t{1} << 20);
  off_t at = 0;
  while (true) {
    const ssize_t got = ::pread(descriptor, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    int cause = got < 0 ? errno : 0;
    if (got > 0) cause = write_all(copy.number(), {block.data(), static_cast<std::size_t>(got)});
    if (cause != 0) {
      ::unlink(path.c_str());
      return file_error("cannot write", path, cause);
    }
    if (got == 0) break;
    at += got;
  }
  if (::dup3(copy.number(), descriptor, O_CLOEXEC) < 0) {
    const int cause = errno;
    ::unlink(path.c_str());
    return file_error("cannot open", path, cause);
  }
  return {};
}

Result<void> FileDisk::link(const std::string& path, const std::string& target) {
  const std::string temporary = path + ".part";
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    return file_error("cannot make the link", path, errno);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int cause = errno;
    ::unlink(temporary.c_str());
    return file_error("cannot make the link", path, cause);
  }
  return {};
}

}  // namespace troupe::runtime
