#pragma once

// metrics.jsonl of a run that goes on: what it tells is cut where the state stands, and read again.
// The sinks of telemetry write it.

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "telemetry/history.h"

namespace troupe::launch {

class MetricsFile {
 public:
  static constexpr const char* kName = "metrics.jsonl";
  // Behind the path of a file with lines that cannot be read.
  static constexpr const char* kUnreadable = ".unreadable";

  // The disk outlives it.
  MetricsFile(std::string path, runtime::Disk& disk) : path_(std::move(path)), disk_(disk) {}

  struct Cut {
    bool validated = false;  // the state's validation is among what is left
    // A gap in the file, to be told to people; "" if nothing. Lines that cannot be read are left
    // out, and the file with them is kept as metrics.jsonl.unreadable.
    std::string problem{};
  };
  // Leaves only what happened up to the state before `step`, and what was said of that state
  // itself.
  runtime::Result<Cut> cut(std::uint64_t step) const;
  // Leaves all but a last line that is not whole. The newest step it tells of; none: of no step.
  runtime::Result<std::optional<std::uint64_t>> mend() const;
  // The last line that tells of a checkpoint; empty when none was ever written.
  runtime::Result<std::string> told_checkpoint() const;
  // Tells the history what the file says, as far as its last 64 MiB go.
  void recall(telemetry::History& history) const;

 private:
  // All of it; "" where there is none.
  runtime::Result<std::string> text() const;

  const std::string path_;
  runtime::Disk& disk_;
};

}  // namespace troupe::launch
