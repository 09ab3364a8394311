#pragma once

// The disk of a run. When somebody removes, empties or moves away the run's folder while the run
// goes on, this makes it again before anything is written.

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "launch/folder/run_folder.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// Any thread.
class RunDisk final : public runtime::Disk {
 public:
  // All outlive it. The log is the run's own, with its file in the folder.
  RunDisk(RunFolder& folder, runtime::Disk& disk, const runtime::Log& log)
      : folder_(folder), disk_(disk), log_(log) {}

  // Puts back what the run had in its folder, as far as it can; called after the folder was made
  // again, on the thread that noticed. It may write with the disk that it is given, not with this
  // one. Set before other threads know of this disk.
  void on_made_again(std::function<void(runtime::Disk& disk)> put_back) {
    put_back_ = std::move(put_back);
  }

  // Makes the folder again if it or what is in it is gone, and says so in the log at once; while
  // files go on to be missing, again each second, or now where `at_once`. kData: it cannot be made;
  // said once.
  runtime::Result<void> hold(bool at_once = false);
  // How often it was made again.
  int made_again() const;

  // As of the disk below; on an error of hold() nothing is written.
  runtime::Result<void> replace(const std::string& path, std::span<const std::byte> bytes) override;
  runtime::Result<runtime::Buffer> read(const std::string& path) override;
  runtime::Result<void> remove(const std::string& path) override;
  runtime::Result<std::vector<std::string>> list(const std::string& folder) override;
  runtime::Result<void> make_folder(const std::string& folder) override;
  runtime::Result<void> link(const std::string& path, const std::string& target) override;

 private:
  RunFolder& folder_;
  runtime::Disk& disk_;
  const runtime::Log& log_;
  std::function<void(runtime::Disk& disk)> put_back_;
  mutable std::mutex mutex_;  // of what follows, and of the folder while it is made
  int made_again_ = 0;
  bool told_ = false;  // since it was whole
  const runtime::SteadyClock clock_;
  runtime::TimePoint try_again_{};
};

}  // namespace troupe::launch
