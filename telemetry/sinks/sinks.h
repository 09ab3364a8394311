#pragma once

// Takes the records of a run into metrics.jsonl, the history that pages are made of, TensorBoard's
// event files and the stream of messages. None of them can fail the run: a failure is told once,
// and the others go on.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "telemetry/history.h"
#include "telemetry/record.h"
#include "telemetry/sinks/append_file.h"
#include "telemetry/sinks/publisher.h"
#include "telemetry/sinks/tensorboard_file.h"

namespace troupe::telemetry {

struct SinkOptions {
  std::string metrics_path;          // appended to
  std::shared_ptr<History> history;  // null: none
  std::string tensorboard_folder;    // "": no event files
  std::string publish = "none";      // as PublisherOptions::address; "none": nowhere
  double time = 0.0;                 // seconds since 1970, now
  // Takes a line for the log. Never empty.
  std::function<void(const std::string&)> warn;
};

// One thread at a time. It waits for nothing but the system's write().
class Sinks {
 public:
  explicit Sinks(SinkOptions options);

  // A session begins. The history knows it at once. The others get it with the first record that
  // follows, so that a session that does nothing leaves nothing.
  void begin(Record run);
  // The line is in the file at once, so a process that is killed leaves all but the last.
  void take(const Record& record);
  // Showers as docs/watching.md has them, for TensorBoard.
  void take_showers(std::string_view json, std::uint64_t step, double time);
  // Writes what may wait; to be called about once a second. There may be many steps in that time,
  // so TensorBoard gets the mean of each of their curves.
  void flush();

  // Makes the files anew, with all that they hold, after they were removed or moved away with their
  // folder. The folder is there again.
  void put_back();

  // Whether a record followed that of begin().
  bool has_begun() const { return open_; }
  // Where lines are published, with the port that was found; "": nowhere.
  std::string published_at() const;
  // How many lines and events found no room.
  std::uint64_t dropped() const;

 private:
  // The sum of the points of a curve since TensorBoard got one of it.
  struct Sum {
    std::uint64_t step = 0, count = 0;
    double time = 0.0, sum = 0.0;
  };

  void open_files();
  // Writes the record into all but the history.
  void write(const Record& record);
  void tell(const runtime::Result<void>& result);

  SinkOptions options_;
  std::optional<Record> begin_;  // while nothing has followed it
  bool open_ = false;
  std::optional<AppendFile> metrics_;
  std::optional<TensorboardFile> tensorboard_;
  std::unique_ptr<Publisher> publisher_;
  std::map<std::string, Sum> sums_;  // by series
};

}  // namespace troupe::telemetry
