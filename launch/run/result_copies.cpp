#include "launch/run/result_copies.h"

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

using runtime::Result;

ResultCopies::ResultCopies(std::string folder, std::optional<std::string> place,
                           runtime::Disk& disk, const runtime::Log& log)
    : folder_(std::move(folder)),
      place_(std::move(place)),
      plain_(disk),
      log_(log),
      teller_(disk, *this) {}

Result<std::unique_ptr<ResultCopies>> ResultCopies::begin(std::string folder,
                                                          std::optional<std::string> place,
                                                          runtime::Disk& disk,
                                                          const runtime::Log& log) {
  std::unique_ptr<ResultCopies> copies(
      new ResultCopies(std::move(folder), std::move(place), disk, log));
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
    waiting_.insert(name);
  }
  changed_.notify_all();
}

void ResultCopies::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const std::string name = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    busy_ = true;
    lock.unlock();
    const std::string path = folder_ + "/" + name;
    std::error_code unknown;
    const bool is_there = std::filesystem::exists(path, unknown);
    const Result<void> put =
        is_there ? source_of(*place_).put(path, *place_ + "/" + name) : Result<void>{};
    // It may have gone meanwhile.
    const bool failed = !put.ok() && std::filesystem::exists(path, unknown);
    if (failed) log_.warning(put.error().message + "; the run goes on, and the file stays here");
    lock.lock();
    busy_ = false;
    if (failed) failed_.insert(name);
    if (is_there && put.ok()) {
      copied_.insert(name);
      failed_.erase(name);
    }
    changed_.notify_all();
  }
}

void ResultCopies::finish() {
  if (!place_) return;
  for (const char* const name : {RunFolder::kTopology, RunFolder::kSummary, MetricsFile::kName,
                                 MembershipFile::kName, NodesFile::kName, RunFolder::kLog}) {
    add(name);
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !busy_; });
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
  if (path.starts_with(within + RunFolder::kCheckpoints)) copies_.add(path.substr(within.size()));
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
