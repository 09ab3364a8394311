#pragma once

// The folder of one study: study.yaml, which is the study as it was read, study.jsonl
// (study_journal.h), and trials/, with the folder of each run. Locked while the study goes on.

#include <span>
#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "study/study_file.h"
#include "study/study_journal.h"
#include "study/trial_book.h"

namespace troupe::study {

class StudyFolder {
 public:
  static constexpr const char* kStudy = "study.yaml";  // with it, it holds a study

  // Makes it, with the study and the first lines of its journal: all are there, or it holds no
  // study. kUsage: something is there already, or study.yaml cannot hold the study, whose
  // topology has a path that is no UTF-8.
  static runtime::Result<StudyFolder> create(const std::string& path, const Study& study,
                                             std::span<const JournalLine> first,
                                             runtime::Disk& disk);
  // Finds it again. kUsage: it holds no study, or the study goes on.
  static runtime::Result<StudyFolder> reopen(const std::string& path);
  // Without the lock, to read what is there. kUsage: it holds no study.
  static runtime::Result<StudyFolder> look_at(const std::string& path);
  // Whether a process has the lock of this folder, which is that of a study or a run.
  static bool is_locked(const std::string& path);

  const std::string& path() const { return path_; }
  std::string journal() const;
  // The folder of a trial's run; `repeats`: how many runs a trial has.
  std::string run_folder(RunNumber run, std::uint32_t repeats) const;
  // Makes the folder by which its runs take different hosts of ssh (launch/run/run_pools.h).
  runtime::Result<void> make_hosts(runtime::Disk& disk) const;

 private:
  explicit StudyFolder(std::string path) : path_(std::move(path)) {}
  runtime::Result<void> lock();

  std::string path_;
  runtime::Descriptor lock_;
};

}  // namespace troupe::study
