#pragma once

// Copies of a run's files on a server, for runs whose own folder will not last. A thread of its own
// makes them beside the run, which no copy ever holds up or ends.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

class ResultCopies {
 public:
  // The run's folder and its disk. Files go to `place`, an address that theirs begin with; none:
  // nothing is copied. The disk and the log outlive this. Errors (kData): an address with a secret
  // in it; kInternal: no thread. `patience`: of finish().
  static runtime::Result<std::unique_ptr<ResultCopies>> begin(
      std::string folder, std::optional<std::string> place, runtime::Disk& disk,
      const runtime::Log& log, std::chrono::milliseconds patience = std::chrono::minutes(1));
  // Waits for what is being copied, and leaves out the rest.
  ~ResultCopies();
  ResultCopies(const ResultCopies&) = delete;
  ResultCopies& operator=(const ResultCopies&) = delete;

  // For the run, which writes its topology and its checkpoints there: each of them is copied, but
  // for a checkpoint that is gone when its turn comes.
  runtime::Disk& disk();
  // At the end of the run, when its files are written: copies them and the checkpoints that are not
  // there yet, waits until all are copied or have failed, and says in the log how many were. Gives
  // the rest up, and what is on its way, where the patience has brought neither a file nor a
  // megabyte there; a program that copies to root:// ends by its own time.
  void finish();

 private:
  // Tells of the files that are written.
  class Teller final : public runtime::Disk {
   public:
    Teller(runtime::Disk& disk, ResultCopies& copies) : disk_(disk), copies_(copies) {}
    runtime::Result<void> replace(const std::string& path,
                                  std::span<const std::byte> bytes) override;
    runtime::Result<runtime::Buffer> read(const std::string& path) override;
    runtime::Result<void> remove(const std::string& path) override;
    runtime::Result<std::vector<std::string>> list(const std::string& folder) override;
    runtime::Result<void> make_folder(const std::string& folder) override;
    runtime::Result<void> link(const std::string& path, const std::string& target) override;

   private:
    runtime::Disk& disk_;
    ResultCopies& copies_;
  };

  ResultCopies(std::string folder, std::optional<std::string> place, runtime::Disk& disk,
               const runtime::Log& log, std::chrono::milliseconds patience);
  // By its path within the folder; any thread.
  void add(const std::string& name);
  void work();
  runtime::Result<void> copy(const std::string& name);

  const std::string folder_;
  std::optional<std::string> place_;
  runtime::Disk& plain_;
  const runtime::Log& log_;
  const std::chrono::milliseconds patience_;
  Teller teller_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  std::set<std::string> copied_, failed_;
  bool busy_ = false, ending_ = false;
  std::optional<std::chrono::steady_clock::time_point> give_up_at_;  // since finish()
  std::thread thread_;
};

}  // namespace troupe::launch
