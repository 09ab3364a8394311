#pragma once

// The folder of one run: made or found again, locked while the run lives.

#include <cstdint>
#include <string>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::launch {

class RunFolder {
 public:
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

  // Leaves in metrics.jsonl only what happened before `step`.
  runtime::Result<void> cut_metrics(std::uint64_t step) const;

 private:
  RunFolder(std::string path, runtime::Disk& disk) : path_(std::move(path)), disk_(disk) {}
  // Held until the object ends; another process that has it is an error (kUsage).
  runtime::Result<void> lock();

  std::string path_;
  runtime::Disk& disk_;
  int lock_ = -1;
};

}  // namespace troupe::launch
