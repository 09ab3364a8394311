#pragma once

// The folder of one run: made or found again, locked while the run lives.

#include <string>
#include <vector>

#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// "runs/NAME-20250131-123456", now in local time: where a run goes whose folder nobody has named.
std::string new_run_folder(const std::string& name);

class RunFolder {
 public:
  // Its files and folders, but for the files that have a class of their own.
  static constexpr const char* kTopology = "topology.yaml";  // effective; with it it holds a run
  static constexpr const char* kSummary = "summary.json";
  static constexpr const char* kLog = "log.txt";
  static constexpr const char* kPageToken = "page.token";
  static constexpr const char* kCheckpoints = "checkpoints";
  static constexpr const char* kShowers = "showers";
  static constexpr const char* kTrace = "trace";

  // Both take the lock.
  //
  // Makes the folder. One that holds anything but what a run that could not begin leaves is refused
  // (kUsage), and what can be done suggested. Nothing of what is there is touched.
  static runtime::Result<RunFolder> create(const std::string& path, runtime::Disk& disk);
  // Finds a run again, and removes the temporary files of its writes that were cut off. Refused
  // (kUsage) are a folder without a run, and one in which a link has the name of a file of the run:
  // what the run writes would end elsewhere.
  static runtime::Result<RunFolder> reopen(const std::string& path, runtime::Disk& disk);
  // Without the lock. kUsage: the folder holds no run.
  static runtime::Result<void> check(const std::string& path);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string checkpoints() const { return file(kCheckpoints); }
  runtime::Result<void> write_topology(const std::string& text, runtime::Disk& disk) const;

  // Any thread, all three. Whether the folder at the path is still the one that is locked, neither
  // removed nor moved away; where the locked one is now, "" if it was removed; and whether it holds
  // what every run that has begun has in it: its topology, its checkpoints and its lock.
  bool is_there() const;
  std::string where() const;
  bool is_whole() const;
  // Makes again, and locks, what of the folder is not there: itself, or its checkpoints and its
  // lock. kUsage: another run has taken its place. kData: it cannot be made. Not while another call
  // of this object runs.
  runtime::Result<void> make_again();

  // Removes what create() has made, and the log, when a run did not begin. Files that were there
  // before stay, and so do folders in which somebody else has put something. Returns whether the
  // folder itself is gone then.
  bool discard() const;
  // Removes a file of the folder; that there is none is no error.
  runtime::Result<void> remove(const std::string& name) const;

 private:
  RunFolder(std::string path, runtime::Disk& disk) : path_(std::move(path)), disk_(disk) {}
  // Held until the object ends; another process that has it is an error (kUsage).
  runtime::Result<void> lock();
  runtime::Result<void> remove_temporary_files() const;

  std::string path_;
  runtime::Disk& disk_;
  runtime::Descriptor lock_;      // the file ".lock"
  runtime::Descriptor folder_;    // the folder itself
  std::vector<std::string> new_;  // what create() did not find, what lies deepest first
};

}  // namespace troupe::launch
