#pragma once

// The folder of a run, finished or going on, as a history. Reads alone: nothing in the folder is
// changed or locked.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/error.h"
#include "telemetry/history.h"
#include "telemetry/run_source.h"

namespace troupe::telemetry {

struct RunReaderOptions {
  HistoryOptions history;
  std::chrono::milliseconds poll{200};  // how often it looks for what is new
  // Told now and then while a long metrics.jsonl is read for the first time: bytes so far, and of
  // how many. True: go on. Empty: nobody wants to know.
  std::function<bool(std::uint64_t read, std::uint64_t bytes)> progress;
};

class RunReader {
 public:
  // Reads all that is there, then goes on reading on a thread of its own. kData: there is no run in
  // the folder, or progress() has said to stop.
  static runtime::Result<std::unique_ptr<RunReader>> open(const std::string& folder,
                                                          const RunReaderOptions& options = {});
  ~RunReader();
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;

  // When metrics.jsonl is cut back, as it is when a run is resumed, the history is cleared and told
  // anew.
  std::shared_ptr<const History> history() const;
  // Any thread. Whether the run goes on, as far as can be told: it has not said how it ended, and
  // its folder is locked or was written to lately.
  bool live() const;
  // Any thread. Lines of metrics.jsonl that could not be understood, or were too long to be any.
  std::uint64_t bad_lines() const;
  // For a page's server, which must end before this.
  RunSource source() const;

 private:
  struct Impl;
  explicit RunReader(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::telemetry
