#pragma once

// Whether this machine is about to be taken away, as clouds and batch systems announce it: by a
// file that appears, or through something that a command can ask.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

struct PreemptionOptions {
  // The notice is there when this exists; "": none is watched.
  std::string file;
  // Or when this, run by /bin/sh, ends with exit code 0; "": none is run. Its output is lost.
  std::string command;
  // From one look to the next. Default 5 s.
  runtime::Duration every = std::chrono::seconds(5);
  // The longest that the command may take; then it is killed, with what it has started. Default
  // 10 s.
  runtime::Duration command_within = std::chrono::seconds(10);
};

// Looks once, or again and again on a thread of its own. One look at a time.
class PreemptionWatch {
 public:
  PreemptionWatch(PreemptionOptions options, runtime::Log log);
  // Ends a watch that has begun; does not wait for a command that runs.
  ~PreemptionWatch() { end(); }
  PreemptionWatch(const PreemptionWatch&) = delete;
  PreemptionWatch& operator=(const PreemptionWatch&) = delete;

  // Why this machine is about to be taken away; none: nothing is known of that. Takes as long as
  // the command. A file that cannot be looked for, or a command that cannot be run, is warned of
  // once. The calling thread is the command's parent.
  std::optional<std::string> look();

  // From here on it looks on that thread, until the first notice: on_notice(why), once at most.
  // Does nothing where nothing is to be watched.
  void begin(std::function<void(const std::string&)> on_notice);
  void end();

 private:
  bool file_is_there();
  bool command_says_so();
  // Once for the file and once for the command.
  void warn(bool& warned, const std::string& what);

  const PreemptionOptions options_;
  const runtime::Log log_;
  bool warned_of_file_ = false, warned_of_command_ = false;
  const runtime::Descriptor wake_;  // an eventfd: it is to end
  std::thread thread_;              // the last to begin
};

}  // namespace troupe::launch
