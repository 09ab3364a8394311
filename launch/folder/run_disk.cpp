#include "launch/folder/run_disk.h"

#include <utility>

#include <fmt/format.h>

namespace troupe::launch {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr auto kPause = std::chrono::seconds(1);

}  // namespace

// Says so once, and is quiet then until the folder was whole again: files that go on to be missing
// would else fill the log.
Result<void> RunDisk::hold(bool at_once) {
  const std::scoped_lock lock(mutex_);
  const bool is_there = folder_.is_there();
  // Nothing is missing before the run has begun.
  const bool is_whole = is_there && (!put_back_ || folder_.is_whole());
  if (is_whole) told_ = false;
  if (is_whole || (is_there && told_ && !at_once && clock_.now() < try_again_)) return {};
  const std::string where = is_there ? folder_.path() : folder_.where();
  const std::string what =
      is_there        ? fmt::format("files of the run were removed from its folder {}", where)
      : where.empty() ? fmt::format("the run's folder {} was removed", folder_.path())
                      : fmt::format("the run's folder {} was moved to {}", folder_.path(), where);
  if (auto made = folder_.make_again(); !made.ok()) {
    if (!std::exchange(told_, true)) {
      log_.error(
          fmt::format("{}, and cannot be made again: {}. Training goes on; its last state is "
                      "saved elsewhere in the end",
                      what, made.error().message));
    }
    try_again_ = clock_.now() + kPause;
    if (is_there) return {};
    return Error{ErrorKind::kData, made.error().message};
  }
  ++made_again_;
  const auto logged = log_.put_back();
  const bool was_moved = !is_there && !where.empty();
  if (!std::exchange(told_, true)) {
    log_.error(fmt::format(
        "{} while the run goes on. The run puts back what it has, and a checkpoint follows; {}",
        what,
        was_moved ? "earlier checkpoints and showers stay where it is now"
                  : "earlier checkpoints and showers that were removed are lost"));
    if (!logged.ok()) log_.warning(logged.error().message);
  }
  if (put_back_) put_back_(disk_);
  if (!folder_.is_whole()) try_again_ = clock_.now() + kPause;
  return {};
}

int RunDisk::made_again() const {
  const std::scoped_lock lock(mutex_);
  return made_again_;
}

Result<void> RunDisk::replace(const std::string& path, std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(hold());
  return disk_.replace(path, bytes);
}

Result<runtime::Buffer> RunDisk::read(const std::string& path) { return disk_.read(path); }

Result<void> RunDisk::remove(const std::string& path) {
  RETURN_IF_ERROR(hold());
  return disk_.remove(path);
}

Result<std::vector<std::string>> RunDisk::list(const std::string& folder) {
  RETURN_IF_ERROR(hold());
  return disk_.list(folder);
}

Result<void> RunDisk::make_folder(const std::string& folder) {
  RETURN_IF_ERROR(hold());
  return disk_.make_folder(folder);
}

Result<void> RunDisk::link(const std::string& path, const std::string& target) {
  RETURN_IF_ERROR(hold());
  return disk_.link(path, target);
}

}  // namespace troupe::launch
