#pragma once

// The folder of a run, finished or going on, as a history. It only reads: nothing in the folder is
// changed or locked.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/base/error.h"
#include "telemetry/history.h"
#include "telemetry/run_source.h"
#include "telemetry/watch/file_tail.h"

namespace troupe::telemetry {

struct RunReaderOptions {
  std::chrono::milliseconds poll{200};  // how often it looks for what is new
  // Told now and then while a long metrics.jsonl is read for the first time: the bytes read so far,
  // and how many there are. False ends the reading. Empty: nobody wants to know.
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
  std::shared_ptr<const History> history() const { return history_; }
  // Any thread. Whether the run goes on, as far as can be told: it has not said how it ended, and
  // its folder is locked or was written to lately.
  bool live() const { return live_; }
  // Any thread. How many lines of metrics.jsonl were not understood, or were too long for one.
  std::uint64_t bad_lines() const { return bad_lines_; }
  // The run for a page's server, which must end before this.
  RunSource source() const;

  // Which content a file has. Equal ones: it has not changed.
  struct FileMark {
    std::uint64_t inode = 0;
    std::int64_t size = -1;    // -1: there is no file
    std::int64_t written = 0;  // nanoseconds since 1970
    bool operator==(const FileMark&) const = default;
  };

 private:
  RunReader(const std::string& folder, const RunReaderOptions& options);
  // Reads all that is new. False: progress() said to stop.
  bool read_all();
  void take_line(std::string_view line);
  void begin_anew();
  void take_log_line(std::string_view text);
  void read_nodes();
  void judge_end(const FileMark& summary);
  std::string why_it_is_silent(bool has_summary) const;
  bool is_held() const;
  void follow();

  const std::string folder_;
  const RunReaderOptions options_;
  const std::shared_ptr<History> history_;
  FileTail metrics_, log_;
  LogLine last_log_;  // the last message, with all its lines
  FileMark nodes_mark_, summary_mark_;
  std::uint64_t not_understood_ = 0;  // lines that came whole
  bool told_end_ = false;
  bool follows_ = false;  // all that was there at first is read
  std::atomic<bool> live_ = false;
  std::atomic<std::uint64_t> bad_lines_ = 0;

  std::mutex mutex_;  // of `ending_`
  std::condition_variable woken_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::telemetry
