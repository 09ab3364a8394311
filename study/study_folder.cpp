#include "study/study_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "launch/run/run_pools.h"
#include "runtime/base/utf8.h"

namespace troupe::study {
namespace {

namespace fs = std::filesystem;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr const char* kLock = ".lock";  // as of launch::RunFolder
constexpr const char* kTrials = "trials";

std::string file_of(const std::string& path, const char* name) { return path + "/" + name; }

bool holds_study(const std::string& path) {
  std::error_code ignored;
  return fs::exists(file_of(path, StudyFolder::kStudy), ignored);
}

// A lock and a journal are what a study leaves that could not begin.
Result<void> check_free(const std::string& path) {
  if (holds_study(path)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} holds a study already; go on with it: troupe study --resume {}",
                             path, path)};
  }
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path name = entry->path().filename();
    if (name == kLock || name == StudyJournal::kName) continue;
    return Error{ErrorKind::kUsage,
                 fmt::format("{} is not empty; give --out a folder of its own", path)};
  }
  if (!error || error == std::errc::no_such_file_or_directory) return {};
  return Error{ErrorKind::kUsage, fmt::format("{}: {}", path, error.message())};
}

}  // namespace

Result<StudyFolder> StudyFolder::create(const std::string& path, const Study& study,
                                        std::span<const JournalLine> first, runtime::Disk& disk) {
  const std::string text = print_study(study);
  if (!runtime::is_utf8(text)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("the path of {} is no UTF-8 text, so that no study.yaml can hold it; "
                             "put it in another folder",
                             runtime::printable(study.topology))};
  }
  RETURN_IF_ERROR(check_free(path));
  RETURN_IF_ERROR(disk.make_folder(path));
  StudyFolder folder(path);
  RETURN_IF_ERROR(folder.lock());
  // Another one may have begun in it since.
  RETURN_IF_ERROR(check_free(path));
  std::string lines;
  for (const JournalLine& line : first) lines += journal_text(line) + "\n";
  RETURN_IF_ERROR(disk.replace(folder.journal(), std::as_bytes(std::span{lines})));
  RETURN_IF_ERROR(disk.replace(file_of(path, kStudy), std::as_bytes(std::span{text})));
  return folder;
}

Result<StudyFolder> StudyFolder::reopen(const std::string& path) {
  ASSIGN_OR_RETURN(StudyFolder folder, look_at(path));
  RETURN_IF_ERROR(folder.lock());
  return folder;
}

Result<StudyFolder> StudyFolder::look_at(const std::string& path) {
  if (holds_study(path)) return StudyFolder(path);
  return Error{ErrorKind::kUsage,
               fmt::format("{} is no study's folder, such as runs/search", path)};
}

bool StudyFolder::is_locked(const std::string& path) {
  const runtime::Descriptor lock(
      ::open(file_of(path, kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return lock.is_open() && ::flock(lock.number(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string StudyFolder::journal() const { return file_of(path_, StudyJournal::kName); }

std::string StudyFolder::run_folder(RunNumber run, std::uint32_t repeats) const {
  const std::string trial = fmt::format("{}/{}/{}", path_, kTrials, run.trial);
  return repeats == 1 ? trial : fmt::format("{}.{}", trial, run.repeat);
}

Result<void> StudyFolder::make_hosts(runtime::Disk& disk) const {
  return disk.make_folder(fmt::format("{}/{}/{}", path_, kTrials, launch::RunPools::kHosts));
}

Result<void> StudyFolder::lock() {
  const std::string name = file_of(path_, kLock);
  const auto failed = [&](const char* doing) {
    return Error{ErrorKind::kData, fmt::format("cannot {} {}: {}", doing, name,
                                               std::generic_category().message(errno))};
  };
  runtime::Descriptor lock(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock.is_open()) return failed("open");
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock");
    return Error{ErrorKind::kUsage,
                 fmt::format("{} belongs to a study that is still going on", path_)};
  }
  lock_ = std::move(lock);
  return {};
}

}  // namespace troupe::study
