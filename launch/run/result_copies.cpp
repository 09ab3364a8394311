#include "launch/run/result_copies.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "launch/folder/membership_file.h"
#include "launch/folder/metrics_file.h"
#include "launch/folder/nodes_file.h"
#include "launch/folder/run_folder.h"
#include "launch/run/remote_files.h"
#include "pipeline/data/remote_source.h"
#include "runtime/base/start_thread.h"

namespace troupe::launch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kPieceBytes = 1'000'000;  // that arrive in time

}  // namespace

using runtime::Result;

ResultCopies::ResultCopies(std::string folder, std::optional<std::string> place,
                           runtime::Disk& disk, const runtime::Log& log,
                           std::chrono::milliseconds patience)
    : folder_(std::move(folder)),
      place_(std::move(place)),
      plain_(disk),
      log_(log),
      patience_(patience),
      teller_(disk, *this) {}

Result<std::unique_ptr<ResultCopies>> ResultCopies::begin(std::string folder,
                                                          std::optional<std::string> place,
                                                          runtime::Disk& disk,
                                                          const runtime::Log& log,
                                                          std::chrono::milliseconds patience) {
  std::unique_ptr<ResultCopies> copies(
      new ResultCopies(std::move(folder), std::move(place), disk, log, patience));
  if (!copies->place_) return copies;
  while (copies->place_->ends_with('/')) copies->place_->pop_back();
  RETURN_IF_ERROR(pipeline::check_address(*copies->place_ + "/" + RunFolder::kSummary));
  ASSIGN_OR_RETURN(copies->thread_,
                   runtime::start_thread("copying results", [own = copies.get()] { own->work(); }));
  return copies;
}

ResultCopies::~ResultCopies() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

runtime::Disk& ResultCopies::disk() {
  return place_ ? static_cast<runtime::Disk&>(teller_) : plain_;
}

void ResultCopies::add(const std::string& name) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::ranges::find(waiting_, name) == waiting_.end()) waiting_.push_back(name);
  }
  changed_.notify_all();
}

void ResultCopies::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const std::string name = waiting_.front();
    waiting_.pop_front();
    if (give_up_at_ && Clock::now() > *give_up_at_) {
      failed_.insert(name);
      changed_.notify_all();
      continue;
    }
    busy_ = true;
    lock.unlock();
    const std::string path = folder_ + "/" + name;
    const Result<void> put = copy(name);
    std::error_code unknown;
    const bool is_there = std::filesystem::exists(path, unknown);  // it may have gone meanwhile
    if (!put.ok() && is_there) {
      log_.warning(put.error().message + "; the file stays here");
    }
    lock.lock();
    busy_ = false;
    if (is_there) (put.ok() ? copied_ : failed_).insert(name);
    if (put.ok()) {
      failed_.erase(name);
      if (give_up_at_) give_up_at_ = Clock::now() + patience_;
    }
    changed_.notify_all();
  }
}

Result<void> ResultCopies::copy(const std::string& name) {
  const std::string path = folder_ + "/" + name;
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return {};
  const auto goes_on = [this, counted = std::uint64_t{0}](std::uint64_t sent,
                                                          std::uint64_t) mutable -> Result<void> {
    const std::scoped_lock lock(mutex_);
    if (!give_up_at_) return {};
    if (sent < counted) counted = 0;  // another attempt
    if (sent >= counted + kPieceBytes) {
      counted = sent;
      give_up_at_ = Clock::now() + patience_;
    }
    if (Clock::now() <= *give_up_at_) return {};
    return runtime::Error{
        runtime::ErrorKind::kData,
        "given up at the run's end, as neither a file nor a megabyte has arrived in "
        "time"};
  };
  return source_of(*place_).put(path, *place_ + "/" + name, goes_on);
}

void ResultCopies::finish() {
  if (!place_) return;
  const std::string checkpoints = RunFolder::kCheckpoints;
  std::vector<std::string> names{RunFolder::kTopology};
  if (const auto kept = plain_.list(folder_ + "/" + checkpoints); kept.ok()) {
    for (const std::string& name : *kept) {
      if (name.ends_with(".h5")) names.push_back(checkpoints + "/" + name);
    }
  }
  names.insert(names.end(), {RunFolder::kSummary, MetricsFile::kName, MembershipFile::kName,
                             NodesFile::kName, RunFolder::kLog});
  {
    const std::scoped_lock lock(mutex_);
    give_up_at_ = Clock::now() + patience_;
    std::erase_if(names, [&](const std::string& name) {
      return name.starts_with(checkpoints) && copied_.contains(name);
    });
  }
  for (const std::string& name : names) add(name);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !busy_; });
  std::erase_if(failed_, [&](const std::string& name) {
    std::error_code unknown;
    return !std::filesystem::exists(folder_ + "/" + name, unknown);
  });
  const std::string where = pipeline::shown_address(*place_);
  if (failed_.empty()) {
    log_.info(fmt::format("{} files of the run are copied to {}", copied_.size(), where));
  } else {
    log_.warning(fmt::format("{} files of the run are not copied to {}; they are in {}",
                             failed_.size(), where, folder_));
  }
}

Result<void> ResultCopies::Teller::replace(const std::string& path,
                                           std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(disk_.replace(path, bytes));
  const std::string within = copies_.folder_ + "/";
  if (path.starts_with(within + RunFolder::kCheckpoints) || path == within + RunFolder::kTopology) {
    copies_.add(path.substr(within.size()));
  }
  return {};
}

Result<runtime::Buffer> ResultCopies::Teller::read(const std::string& path) {
  return disk_.read(path);
}

Result<void> ResultCopies::Teller::remove(const std::string& path) { return disk_.remove(path); }

Result<std::vector<std::string>> ResultCopies::Teller::list(const std::string& folder) {
  return disk_.list(folder);
}

Result<void> ResultCopies::Teller::make_folder(const std::string& folder) {
  return disk_.make_folder(folder);
}

Result<void> ResultCopies::Teller::link(const std::string& path, const std::string& target) {
  return disk_.link(path, target);
}

}  // namespace troupe::launch
