#include "launch/folder/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "pipeline/checkpoint/checkpoint_folder.h"

namespace troupe::launch {
namespace {

using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

bool holds_run(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/topology.yaml", ignored);
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
      ::open((path + "/.lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return lock.is_open() && ::flock(lock.number(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// The names of what a run makes in its folder.
constexpr std::array kOwnNames = {"topology.yaml",    "metrics.jsonl", "summary.json",
                                  "membership.jsonl", "nodes.json",    "log.txt",
                                  "page.token",       ".lock",         "checkpoints",
                                  "showers",          "trace",         "metrics.jsonl.unreadable"};

bool is_own_name(const std::string& name) {
  return std::find(kOwnNames.begin(), kOwnNames.end(), name) != kOwnNames.end() ||
         name.starts_with("events.out.tfevents.");
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
  for (const char* folder : {"checkpoints", "showers", "trace"}) {
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
  if (std::filesystem::file_size(path + "/metrics.jsonl", ignored) > 0 && !ignored) return true;
  for (const auto& entry : std::filesystem::directory_iterator(path + "/checkpoints", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".h5")) return true;
  }
  return false;
}

// Files with a point in front do not show, and a new file system has its lost+found.
bool counts(const std::string& name) { return !name.starts_with('.') && name != "lost+found"; }

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
    if (is_own_name(name) || !counts(name)) continue;
    return Error{ErrorKind::kUsage,
                 fmt::format("{} is not empty (it holds {}), and a run has its folder to itself; "
                             "choose another with --out, such as {}",
                             path, name, (std::filesystem::path(path) / "run").string())};
  }
  return check_no_links(path);
}

// The step a metrics line belongs to; none for a line that is not whole.
std::optional<std::uint64_t> step_of(std::string_view line) {
  constexpr std::string_view kKey = "\"step\":";
  const std::size_t at = line.find(kKey);
  if (at == std::string_view::npos || !line.ends_with('}')) return std::nullopt;
  std::uint64_t step = 0;
  const char* first = line.data() + at + kKey.size();
  const auto parsed = std::from_chars(first, line.data() + line.size(), step);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return step;
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

Result<RunFolder> RunFolder::create(const std::string& path, runtime::Disk& disk) {
  if (path.empty()) return Error{ErrorKind::kUsage, "a run needs a folder: --out is empty"};
  RETURN_IF_ERROR(check_free(path));
  RunFolder folder(path, disk);
  std::error_code ignored;
  for (const char* name : {".lock", "log.txt", "page.token"}) {
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

Result<RunFolder> RunFolder::reopen(const std::string& path, runtime::Disk& disk) {
  if (!holds_run(path)) {
    std::error_code ignored;
    if (!std::filesystem::exists(path + "/.lock", ignored)) {
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
  const std::string name = file(".lock");
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

bool RunFolder::is_there() const { return is_at(folder_, path_); }

bool RunFolder::is_whole() const {
  std::error_code unknown;
  const auto exists = [&](const std::string& path) {
    return std::filesystem::exists(path, unknown) || unknown;
  };
  return exists(file("topology.yaml")) && exists(checkpoints()) && is_at(lock_, file(".lock"));
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
  return is_at(lock_, file(".lock")) ? Result<void>{} : lock();
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
  for (const char* name : {"topology.yaml", "summary.json", "nodes.json", "metrics.jsonl",
                           "metrics.jsonl.unreadable", "page.token"}) {
    RETURN_IF_ERROR(remove(fmt::format("{}.part", name)));
  }
  std::error_code ignored;
  for (const std::string& folder : {checkpoints(), file("showers"), file("trace")}) {
    if (!std::filesystem::exists(folder, ignored)) continue;
    ASSIGN_OR_RETURN(const auto names, disk_.list(folder));
    for (const std::string& name : names) {
      if (name.ends_with(".part"))
        RETURN_IF_ERROR(disk_.remove(fmt::format("{}/{}", folder, name)));
    }
  }
  return {};
}

Result<RunFolder::CutMetrics> RunFolder::cut_metrics(std::uint64_t step) const {
  const std::string path = file("metrics.jsonl");
  CutMetrics result;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    if (step > 0) result.problem = path + " is gone, and with it what the run told so far";
    return result;
  }
  ASSIGN_OR_RETURN(const runtime::Buffer old, disk_.read(path));
  std::string_view rest(reinterpret_cast<const char*>(old.data()), old.size());
  std::string kept;
  std::uint64_t unreadable = 0, steps = 0;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const auto found = step_of(line);
    const bool is_step = line.starts_with(R"({"kind":"step")");
    const bool of_state = found == step && !is_step;
    if (of_state && line.starts_with(R"({"kind":"validation")")) result.validated = true;
    if (of_state || (found && *found < step)) {
      kept.append(line).push_back('\n');
      steps += is_step;
    }
    if (end == std::string_view::npos) break;
    unreadable += !found;
    rest.remove_prefix(end + 1);
  }
  if (unreadable > 0) RETURN_IF_ERROR(disk_.replace(path + ".unreadable", old.bytes()));
  RETURN_IF_ERROR(disk_.replace(path, std::as_bytes(std::span{kept})));
  if (unreadable > 0) {
    result.problem = fmt::format(
        "{}: {} lines cannot be read and are left out; the file with them is kept as "
        "metrics.jsonl.unreadable",
        path, unreadable);
  } else if (steps < step) {
    result.problem = fmt::format("{}: tells of {} of the {} steps so far", path, steps, step);
  }
  return result;
}

Result<std::optional<std::uint64_t>> RunFolder::mend_metrics() const {
  const std::string path = file("metrics.jsonl");
  std::optional<std::uint64_t> newest;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return newest;
  ASSIGN_OR_RETURN(const runtime::Buffer old, disk_.read(path));
  const std::string_view all(reinterpret_cast<const char*>(old.data()), old.size());
  const std::string_view whole = all.substr(0, all.rfind('\n') + 1);
  for (std::string_view rest = whole; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.starts_with(R"({"kind":"step")")) newest = std::max(newest, step_of(line));
  }
  if (whole.size() < all.size()) {
    RETURN_IF_ERROR(disk_.replace(path, std::as_bytes(std::span{whole})));
  }
  return newest;
}

}  // namespace troupe::launch
