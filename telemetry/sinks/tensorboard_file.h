#pragma once

// What a run tells, as TensorBoard reads it: one file per session in the run's folder, named
// events.out.tfevents.SECONDS.HOST.PID. TensorBoard reads the files of a folder one after the
// other, in the order of their names.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "telemetry/histogram.h"
#include "telemetry/record.h"
#include "telemetry/sinks/append_file.h"
#include "telemetry/sinks/png.h"
#include "telemetry/sinks/protobuf.h"

namespace troupe::telemetry {

struct TensorboardOptions {
  std::string folder;            // which is there
  double time = 0.0;             // seconds since 1970, of the file's name
  std::string host;              // "": as the system calls this machine
  std::uint64_t pid = 0;         // 0: of this process
  std::size_t limit = 8u << 20;  // as AppendFileOptions
};

// One thread at a time. Never throws, and nothing it says need be heard: what cannot be written is
// kept for a while, then left out and counted. Times are seconds since 1970; 0 is that of the call
// before. Tags group at "/"; steps as metrics.jsonl counts them.
class TensorboardFile {
 public:
  // kData: the file cannot be made, naming it.
  static runtime::Result<TensorboardFile> open(TensorboardOptions options);

  // Every point a scalar; a mark a text under "marks"; of a "run" a text
  // "run", and the start of a session behind its step, which makes TensorBoard forget what a
  // session before it had of the steps behind that.
  void take(const Record& record);

  void scalar(std::string_view tag, std::uint64_t step, double time, double value);
  void histogram(std::string_view tag, std::uint64_t step, double time, const Histogram& histogram);
  // kInternal as png(); nothing is written then.
  runtime::Result<void> image(std::string_view tag, std::uint64_t step, double time,
                              const Image& image);
  // Read as Markdown.
  void text(std::string_view tag, std::uint64_t step, double time, std::string_view text);

  // Writes what was taken; to be called about once a second. kData is for the log and no reason to
  // stop: the disk is full (told once, however long it stays so), or the file was removed and
  // another begun, or none could be.
  runtime::Result<void> flush();

  // The folder was removed or moved away, and is there again: makes the file anew in it.
  runtime::Result<void> put_back() const { return file_->put_back(); }

  const std::string& path() const { return file_->path(); }
  // Events left out so far.
  std::uint64_t dropped() const { return dropped_before_ + file_->dropped(); }

 private:
  explicit TensorboardFile(TensorboardOptions options) : options_(std::move(options)) {}
  runtime::Result<void> begin();
  runtime::Result<void> begin_again();
  double time_of(double time);
  void add(std::uint64_t step, double time, std::span<const ProtobufMessage> values);

  TensorboardOptions options_;
  std::optional<AppendFile> file_;  // always one after open()
  double newest_ = 0.0;
  std::uint64_t dropped_before_ = 0;  // by files that were removed
  bool lost_ = false;                 // removed, and no other could be begun; told
};

}  // namespace troupe::telemetry
