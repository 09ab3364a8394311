#pragma once

// Lines for people, to standard error and perhaps a file. Handed in, never global; a copy shares
// sinks and differs at most in its name. A line in the file reads
// "2025-01-31 12:34:56.789 warning loader: text".
//
// A text may hold names that others chose. Characters that command a terminal become escapes
// (printable_lines), and the second and further lines of a text are indented, so that no text can
// pass for a line of the log.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::runtime {

enum class LogLevel : std::uint8_t {
  kDebug,    // for who hunts a defect
  kInfo,     // what a run did, a few lines a minute
  kWarning,  // something was survived, or will have to be
  kError,    // the run ends because of it
};

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  // lines below it are not written
  bool to_stderr = true;
  std::string file;  // appended to, flushed line by line; "" for none
  // If set, it is called with each line as it stands ("name: text"), one at a time. Must not log.
  std::function<void(LogLevel, std::string_view)> also;
};

class Log {
 public:
  // kData when the file cannot be opened, naming it.
  static Result<Log> open(const LogOptions& options);
  // Writes nowhere.
  static Log silent();

  // The same sinks; its lines begin with the name.
  Log named(std::string name) const;

  // Any thread. Makes the log's file anew at its place, with all it held, if it was removed or
  // moved away (runtime::put_back). Does nothing without a file.
  Result<void> put_back() const;

  // Any thread. A line that cannot be written (full disk) is given up.
  void debug(std::string_view text) const { write(LogLevel::kDebug, text); }
  void info(std::string_view text) const { write(LogLevel::kInfo, text); }
  void warning(std::string_view text) const { write(LogLevel::kWarning, text); }
  void error(std::string_view text) const { write(LogLevel::kError, text); }
  void write(LogLevel level, std::string_view text) const;

 private:
  struct Sinks;
  explicit Log(std::shared_ptr<Sinks> sinks) : sinks_(std::move(sinks)) {}

  std::shared_ptr<Sinks> sinks_;
  std::string name_;
};

}  // namespace troupe::runtime
