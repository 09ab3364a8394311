#include "launch/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

bool holds_run(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/topology.yaml", ignored);
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

}  // namespace

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), disk_(other.disk_), lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

Result<RunFolder> RunFolder::create(const std::string& path, runtime::Disk& disk) {
  RunFolder folder(path, disk);
  RETURN_IF_ERROR(disk.make_folder(folder.checkpoints()));
  RETURN_IF_ERROR(folder.lock());
  if (holds_run(path)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} holds a run already; go on with it by --resume {}, or choose "
                             "another folder with --out",
                             path, path)};
  }
  RETURN_IF_ERROR(folder.remove_temporary_files());
  return folder;
}

Result<RunFolder> RunFolder::reopen(const std::string& path, runtime::Disk& disk) {
  if (!holds_run(path)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} holds no run to resume (no topology.yaml in it)", path)};
  }
  RunFolder folder(path, disk);
  RETURN_IF_ERROR(folder.lock());
  RETURN_IF_ERROR(folder.remove_temporary_files());
  return folder;
}

Result<void> RunFolder::lock() {
  const std::string name = file(".lock");
  lock_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    return Error{ErrorKind::kData,
                 fmt::format("cannot open {}: {}", name, std::generic_category().message(errno))};
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} belongs to a run that is still going on", path_)};
  }
  return Error{ErrorKind::kData, fmt::format("cannot lock {}: {}; a run's folder must be on a file "
                                             "system with locks",
                                             name, std::generic_category().message(errno))};
}

Result<void> RunFolder::remove(const std::string& name) const {
  std::error_code ignored;
  if (!std::filesystem::exists(file(name), ignored)) return {};
  return disk_.remove(file(name));
}

Result<void> RunFolder::remove_temporary_files() const {
  for (const std::string& folder : {path_, checkpoints()}) {
    ASSIGN_OR_RETURN(const auto names, disk_.list(folder));
    for (const std::string& name : names) {
      if (name.ends_with(".part"))
        RETURN_IF_ERROR(disk_.remove(fmt::format("{}/{}", folder, name)));
    }
  }
  return {};
}

Result<bool> RunFolder::cut_metrics(std::uint64_t step) const {
  const std::string path = file("metrics.jsonl");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  ASSIGN_OR_RETURN(const runtime::Buffer old, disk_.read(path));
  std::string_view rest(reinterpret_cast<const char*>(old.data()), old.size());
  std::string kept;
  bool validated = false;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const auto found = step_of(line);
    const bool of_state = found == step && !line.starts_with(R"({"kind":"step")");
    if (of_state && line.starts_with(R"({"kind":"validation")")) validated = true;
    if (of_state || (found && *found < step)) kept.append(line).push_back('\n');
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  RETURN_IF_ERROR(disk_.replace(path, std::as_bytes(std::span{kept})));
  return validated;
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
