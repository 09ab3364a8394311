#pragma once

// The folder of one run: made or found again, locked while the run lives.

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::launch {

class RunFolder {
 public:
  // Both take the lock, then remove the temporary files of writes that were cut off.
  //
  // Makes the folder. One that holds a run already is refused (kUsage) and --resume suggested.
  static runtime::Result<RunFolder> create(const std::string& path, runtime::Disk& disk);
  // Finds a run again; a folder without one is refused (kUsage).
  static runtime::Result<RunFolder> reopen(const std::string& path, runtime::Disk& disk);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string checkpoints() const { return file("checkpoints"); }

  // Leaves in metrics.jsonl only what happened up to the state before `step`, and what was said of
  // that state itself. True: its validation is among that.
  runtime::Result<bool> cut_metrics(std::uint64_t step) const;
  // Leaves in metrics.jsonl all but a last line that is not whole. The newest step it tells of;
  // none: of no step.
  runtime::Result<std::optional<std::uint64_t>> mend_metrics() const;
  // Removes a file of the folder; that there is none is no error.
  runtime::Result<void> remove(const std::string& name) const;

 private:
  RunFolder(std::string path, runtime::Disk& disk) : path_(std::move(path)), disk_(disk) {}
  // Held until the object ends; another process that has it is an error (kUsage).
  runtime::Result<void> lock();
  runtime::Result<void> remove_temporary_files() const;

  std::string path_;
  runtime::Disk& disk_;
  int lock_ = -1;
};

}  // namespace troupe::launch
