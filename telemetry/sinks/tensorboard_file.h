#pragma once

// Writes a run's records for TensorBoard: one file per session in the run's folder, named
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
  std::string folder;            // it exists
  double time = 0.0;             // seconds since 1970, for the file's name
  std::string host;              // "": this machine's name
  std::uint64_t pid = 0;         // 0: that of this process
  std::size_t limit = 8u << 20;  // as AppendFileOptions
};

// One thread at a time. Never throws. Its errors are for the log alone: events that cannot be
// written are kept for a while, then left out and counted. Times are seconds since 1970; 0 means
// that of the call before. Tags group at "/". Steps are those of metrics.jsonl.
class TensorboardFile {
 public:
  // kData: the file cannot be made; the message names it.
  static runtime::Result<TensorboardFile> open(TensorboardOptions options);

  // Every point becomes a scalar, and a mark a text under "marks". A "run" becomes a text "run" and
  // the start of a session after its step, which makes TensorBoard forget what the session before
  // had of later steps.
  void take(const Record& record);

  void scalar(std::string_view tag, std::uint64_t step, double time, double value);
  void histogram(std::string_view tag, std::uint64_t step, double time, const Histogram& histogram);
  // kInternal as png() has it; nothing is written then.
  runtime::Result<void> image(std::string_view tag, std::uint64_t step, double time,
                              const Image& image);
  // TensorBoard reads it as Markdown.
  void text(std::string_view tag, std::uint64_t step, double time, std::string_view text);

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
  void add(std::uint64_t step, double time, std::span<const ProtobufMessage> values);

  TensorboardOptions options_;
  std::optional<AppendFile> file_;  // always there after open()
  double newest_ = 0.0;
  std::uint64_t dropped_before_ = 0;  // in files that were removed
  bool lost_ = false;                 // it was told that no other file could be begun
};

}  // namespace troupe::telemetry
