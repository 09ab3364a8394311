#include "launch/meeting/socket_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;
using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::string_view kPrefix = "troupe-";
constexpr std::string_view kLockFile = "lock";
// The longest name of a socket in it: listen_address() names those of members so.
constexpr std::string_view kLongestName = "member-4194304-ffff";
// Between making a folder and locking it lies less than this.
constexpr std::time_t kMakingSeconds = 60;

std::string message_of(int number) { return std::generic_category().message(number); }

Error unusable(const std::string& parent, const std::string& why) {
  return Error{ErrorKind::kUsage,
               fmt::format("cannot make a folder for sockets in {}: {}; let TMPDIR name a folder "
                           "with a short path that you may write to",
                           parent, why)};
}

// The process in the name of a folder, "troupe-PID-XXXXXX"; 0: it is not one of these.
pid_t process_in(const std::string& name) {
  if (!name.starts_with(kPrefix)) return 0;
  pid_t process = 0;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(begin, end, process);
  const bool right =
      parsed.ec == std::errc() && process > 0 && end - parsed.ptr == 7 && *parsed.ptr == '-';
  return right ? process : 0;
}

// Whether the owner has ended. In a folder without a lock, whose owner was about to make it, the
// number counts: if another process has it now the folder stays, which does no harm.
bool is_left_behind(const fs::path& folder, pid_t process) {
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) ||
      facts.st_uid != ::geteuid()) {
    return false;
  }
  const Descriptor lock(
      ::open((folder / kLockFile).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (lock.is_open()) return ::flock(lock.number(), LOCK_EX | LOCK_NB) == 0;
  if (errno != ENOENT) return false;
  const bool gone = ::kill(process, 0) != 0 && errno == ESRCH;
  return gone && facts.st_mtime + kMakingSeconds <
                     std::chrono::system_clock::to_time_t(runtime::wall_now());
}

void sweep(const std::string& parent) {
  std::error_code failed;
  for (fs::directory_iterator at(parent, failed), end; !failed && at != end; at.increment(failed)) {
    const pid_t process = process_in(at->path().filename().string());
    std::error_code ignored;
    if (process != 0 && is_left_behind(at->path(), process)) fs::remove_all(at->path(), ignored);
  }
}

// The lock is held before it has its name: whoever finds it finds it held.
Result<Descriptor> lock_in(const std::string& folder) {
  const std::string fresh = folder + "/fresh";
  Descriptor lock(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (lock.is_open() && ::flock(lock.number(), LOCK_EX | LOCK_NB) == 0 &&
      ::rename(fresh.c_str(), fmt::format("{}/{}", folder, kLockFile).c_str()) == 0) {
    return lock;
  }
  const int cause = errno;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return Error{ErrorKind::kUsage, message_of(cause)};
}

}  // namespace

SocketFolder::SocketFolder(std::string path, Descriptor lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<SocketFolder> SocketFolder::make(const std::string& parent) {
  sweep(parent);
  std::string path = fmt::format("{}/{}{}-XXXXXX", parent, kPrefix, ::getpid());
  if (const auto address = runtime::parse_address(fmt::format("ipc://{}/{}", path, kLongestName));
      !address.ok()) {
    return unusable(parent, address.error().message);
  }
  if (::mkdtemp(path.data()) == nullptr) return unusable(parent, message_of(errno));
  auto lock = lock_in(path);
  if (!lock.ok()) return unusable(parent, lock.error().message);
  return SocketFolder(std::move(path), std::move(*lock));
}

Result<SocketFolder> SocketFolder::make() {
  const char* named = ::getenv("TMPDIR");
  return make(named != nullptr && *named != '\0' ? named : "/tmp");
}

std::string SocketFolder::address() const { return fmt::format("ipc://{}/head", path_); }

}  // namespace troupe::launch
