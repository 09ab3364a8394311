#include "launch/folder/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "launch/folder/membership_file.h"
#include "launch/folder/metrics_file.h"
#include "launch/folder/nodes_file.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "runtime/base/clock.h"

namespace troupe::launch {
namespace {

using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr const char* kLock = ".lock";

bool holds_run(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/" + RunFolder::kTopology, ignored);
}

// Whether what was opened is still what the path leads to; true where nobody can tell.
bool is_at(const Descriptor& opened, const std::string& path) {
  const auto is_gone = [] { return errno == ENOENT || errno == ENOTDIR || errno == ESTALE; };
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return !is_gone();
  struct stat own {};
  if (::fstat(opened.number(), &own) != 0) return !is_gone();
  return own.st_dev == found.st_dev && own.st_ino == found.st_ino;
}

Error still_going_on(const std::string& path) {
  return Error{ErrorKind::kUsage, fmt::format("{} belongs to a run that is still going on", path)};
}

// Whether a process holds the lock of the run in the folder.
bool is_going_on(const std::string& path) {
  const Descriptor lock(
      ::open((path + "/" + kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return lock.is_open() && ::flock(lock.number(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// Files that are written whole, and so leave a temporary one where that is cut off.
const std::array<std::string, 6> kReplaced = {
    RunFolder::kTopology,  RunFolder::kSummary,
    NodesFile::kName,      MetricsFile::kName,
    RunFolder::kPageToken, std::string(MetricsFile::kName) + MetricsFile::kUnreadable};
const std::array<std::string, 3> kFolders = {RunFolder::kCheckpoints, RunFolder::kShowers,
                                             RunFolder::kTrace};

// Whether it is the name of what a run makes in its folder.
bool is_own_name(const std::string& name) {
  const auto is_in = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_in(kReplaced) || is_in(kFolders) || name == MembershipFile::kName ||
         name == RunFolder::kLog || name == kLock || name.starts_with("events.out.tfevents.");
}

// One that was being written when a run was killed, perhaps its first. It is written anew.
bool is_unfinished(std::string_view name) {
  constexpr std::string_view kPart = ".part";
  return name.ends_with(kPart) &&
         is_own_name(std::string(name.substr(0, name.size() - kPart.size())));
}

Result<void> check_no_links(const std::string& path) {
  std::error_code ignored;
  const auto refused = [](const std::filesystem::path& link) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} is a link, and what the run writes would end elsewhere; put the "
                             "file or folder itself there",
                             link.string())};
  };
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    if (is_own_name(entry.path().filename().string()) && entry.is_symlink(ignored)) {
      return refused(entry.path());
    }
  }
  for (const std::string& folder : kFolders) {
    for (const auto& entry : std::filesystem::directory_iterator(path + "/" + folder, ignored)) {
      const std::string name = entry.path().filename().string();
      // One that was being made when the run was killed is replaced, and never followed.
      const bool is_own =
          name == pipeline::kLatestLink || name == pipeline::kBestLink || name.ends_with(".part");
      if (!is_own && entry.is_symlink(ignored)) return refused(entry.path());
    }
  }
  return {};
}

// Whether a run that is not whole has left what another would mix with its own.
bool holds_remains(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::file_size(path + "/" + MetricsFile::kName, ignored) > 0 && !ignored)
    return true;
  for (const auto& entry :
       std::filesystem::directory_iterator(path + "/" + RunFolder::kCheckpoints, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".h5")) return true;
  }
  return false;
}

// Files with a point in front do not show, and a new file system has its lost+found.
bool counts(const std::string& name) { return !name.starts_with('.') && name != "lost+found"; }

// A run, the remains of one and files of somebody else are told apart, as each needs other advice.
// Other files by the names of a run's own do not count: a run that could not begin leaves some.
Result<void> check_free(const std::string& path) {
  if (holds_run(path)) {
    if (is_going_on(path)) return still_going_on(path);
    return Error{ErrorKind::kUsage,
                 fmt::format("{} holds a run already; go on with it by --resume {}, or choose "
                             "another folder with --out",
                             path, path)};
  }
  if (holds_remains(path)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} holds checkpoints or metrics of a run, though no topology.yaml: "
                             "put that back to go on with it, or choose another folder with --out",
                             path)};
  }
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_own_name(name) || is_unfinished(name) || !counts(name)) continue;
    return Error{ErrorKind::kUsage,
                 fmt::format("{} is not empty (it holds {}), and a run has its folder to itself; "
                             "choose another with --out, such as {}",
                             path, name, (std::filesystem::path(path) / "run").string())};
  }
  return check_no_links(path);
}

// The folder and those above it that do not exist, the deepest first.
std::vector<std::string> missing_folders(const std::string& folder) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (std::filesystem::path path = folder;
       !path.empty() && !std::filesystem::exists(path, ignored); path = path.parent_path()) {
    missing.push_back(path.string());
  }
  return missing;
}

}  // namespace

std::string new_run_folder(const std::string& name) {
  const std::time_t now = std::chrono::system_clock::to_time_t(runtime::wall_now());
  return fmt::format("runs/{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
}

Result<RunFolder> RunFolder::create(const std::string& path, runtime::Disk& disk) {
  if (path.empty()) return Error{ErrorKind::kUsage, "a run needs a folder: --out is empty"};
  RETURN_IF_ERROR(check_free(path));
  RunFolder folder(path, disk);
  std::error_code ignored;
  for (const char* name : {kLock, kLog, kPageToken}) {
    if (!std::filesystem::exists(folder.file(name), ignored))
      folder.new_.push_back(folder.file(name));
  }
  const auto folders = missing_folders(folder.checkpoints());
  folder.new_.insert(folder.new_.end(), folders.begin(), folders.end());
  RETURN_IF_ERROR(disk.make_folder(folder.checkpoints()));
  RETURN_IF_ERROR(folder.lock());
  // Another run may have begun in it since.
  RETURN_IF_ERROR(check_free(path));
  return folder;
}

Result<void> RunFolder::check(const std::string& path) {
  if (holds_run(path)) return {};
  return Error{ErrorKind::kUsage, fmt::format("{} is no run's folder, such as runs/first", path)};
}

// A folder with a lock and without a topology is that of a run that has ended before it began to
// train. Temporary files are removed only under the lock, since without it another process may be
// writing them.
Result<RunFolder> RunFolder::reopen(const std::string& path, runtime::Disk& disk) {
  if (!holds_run(path)) {
    std::error_code ignored;
    if (!std::filesystem::exists(path + "/" + kLock, ignored)) {
      return Error{
          ErrorKind::kUsage,
          fmt::format("{} is no run's folder; --resume takes one that troupe run has made, "
                      "such as runs/first",
                      path)};
    }
    return Error{ErrorKind::kUsage,
                 fmt::format("{} holds no run to resume (no topology.yaml in it); one that was "
                             "stopped before it began to train is begun again: troupe run "
                             "TOPOLOGY --out {}",
                             path, path)};
  }
  RETURN_IF_ERROR(check_no_links(path));
  RunFolder folder(path, disk);
  RETURN_IF_ERROR(folder.lock());
  RETURN_IF_ERROR(folder.remove_temporary_files());
  return folder;
}

Result<void> RunFolder::lock() {
  const std::string name = file(kLock);
  const auto failed = [&](const std::string& what) {
    return Error{ErrorKind::kData,
                 fmt::format("{}: {}", what, std::generic_category().message(errno))};
  };
  Descriptor folder(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return failed("cannot open " + path_);
  Descriptor lock(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock.is_open()) return failed("cannot open " + name);
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return still_going_on(path_);
    return failed(
        fmt::format("cannot lock {} (a run's folder must be on a file system with locks)", name));
  }
  lock_ = std::move(lock);
  folder_ = std::move(folder);
  return {};
}

Result<void> RunFolder::write_topology(const std::string& text, runtime::Disk& disk) const {
  return disk.replace(file(kTopology), std::as_bytes(std::span{text}));
}

bool RunFolder::is_there() const { return is_at(folder_, path_); }

bool RunFolder::is_whole() const {
  std::error_code unknown;
  const auto exists = [&](const std::string& path) {
    return std::filesystem::exists(path, unknown) || unknown;
  };
  return exists(file(kTopology)) && exists(checkpoints()) && is_at(lock_, file(kLock));
}

std::string RunFolder::where() const {
  constexpr std::string_view kRemoved = " (deleted)";
  std::error_code unknown;
  const std::string leads_to =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder_.number()), unknown)
          .string();
  return leads_to.ends_with(kRemoved) ? "" : leads_to;
}

Result<void> RunFolder::make_again() {
  if (!is_there() && holds_run(path_)) {
    return Error{ErrorKind::kUsage, fmt::format("another run has taken the place of {}", path_)};
  }
  RETURN_IF_ERROR(disk_.make_folder(checkpoints()));
  return is_at(lock_, file(kLock)) ? Result<void>{} : lock();
}

bool RunFolder::discard() const {
  std::error_code ignored;
  for (const std::string& path : new_) std::filesystem::remove(path, ignored);
  return !std::filesystem::exists(path_, ignored);
}

Result<void> RunFolder::remove(const std::string& name) const {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file(name), ignored))) return {};
  return disk_.remove(file(name));
}

Result<void> RunFolder::remove_temporary_files() const {
  // In the folder itself there may be files of people.
  for (const std::string& name : kReplaced) {
    RETURN_IF_ERROR(remove(fmt::format("{}.part", name)));
  }
  std::error_code ignored;
  for (const std::string& name : kFolders) {
    const std::string folder = file(name);
    if (!std::filesystem::exists(folder, ignored)) continue;
    ASSIGN_OR_RETURN(const auto names, disk_.list(folder));
    for (const std::string& each : names) {
      if (each.ends_with(".part")) RETURN_IF_ERROR(disk_.remove(folder + "/" + each));
    }
  }
  return {};
}

}  // namespace troupe::launch
