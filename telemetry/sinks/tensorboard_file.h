#pragma once

// Writes a run's records for TensorBoard: one file per session in the run's folder, named
// events.out.tfevents.SECONDS.HOST.PID. TensorBoard reads the files of a folder one after the
// other, in the order of their names.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "telemetry/record.h"
#include "telemetry/sinks/append_file.h"
#include "telemetry/sinks/tensorboard_event.h"

namespace troupe::telemetry {

struct TensorboardOptions {
  std::string folder;     // it exists
  double time = 0.0;      // seconds since 1970, for the file's name
  std::string host;       // "": this machine's name
  std::uint64_t pid = 0;  // 0: that of this process
};

// One thread at a time. Never throws. Its errors are for the log alone: events that cannot be
// written are kept for a while, then left out and counted. Times are seconds since 1970; 0 means
// that of the call before. Steps are those of metrics.jsonl.
class TensorboardFile {
 public:
  // kData: the file cannot be made; the message names it.
  static runtime::Result<TensorboardFile> open(TensorboardOptions options);

  // Every point becomes a scalar, and a mark a text under "marks". A "run" becomes a text "run" and
  // the start of a session after its step, which makes TensorBoard forget what the session before
  // had of later steps.
  void take(const Record& record);

  // Numbers, pictures and texts of a step, as the functions of tensorboard_event.h make them.
  void add(std::uint64_t step, double time, const std::vector<ProtobufMessage>& values);

  // Writes what was taken; to be called about once a second. kData: the disk is full, which is told
  // once, or the file was removed, and another was begun or could not be. That is no reason to
  // stop.
  runtime::Result<void> flush();

  // Makes the file anew after its folder was removed or moved away. The folder is there again.
  runtime::Result<void> put_back() const { return file_->put_back(); }

  const std::string& path() const { return file_->path(); }
  // How many events were left out so far.
  std::uint64_t dropped() const { return dropped_before_ + file_->dropped(); }

 private:
  explicit TensorboardFile(TensorboardOptions options) : options_(std::move(options)) {}
  runtime::Result<void> begin();
  runtime::Result<void> begin_again();
  double time_of(double time);

  TensorboardOptions options_;
  std::optional<AppendFile> file_;  // always there after open()
  double newest_ = 0.0;
  std::uint64_t dropped_before_ = 0;  // in files that were removed
  bool lost_ = false;                 // it was told that no other file could be begun
};

}  // namespace troupe::telemetry
