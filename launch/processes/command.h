#pragma once

// A program that is run to its end, within a time and with bounded output. No shell reads its
// words.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Whether there is something to read now, without waiting.
bool can_be_read(int descriptor);

struct CommandRequest {
  // The program's path, or its name in PATH, and its arguments.
  std::vector<std::string> words;
  std::string input{};  // its standard input
  // Then it is killed, with what it has started.
  runtime::Duration within = std::chrono::seconds(30);
  std::size_t most_output = std::size_t{1} << 20;  // bytes that are kept of what it says
  std::size_t error_lines = 1;                     // that are kept of its standard error, the last
  bool leaves_others = false;                      // ChildOptions
  int wake_descriptor = -1;  // ends the wait for it too, when it can be read; -1: none
};

struct CommandEnd {
  std::optional<ChildEnd> end;  // none: it was killed
  bool woken = false;           // by the descriptor, not by the time
  std::string output;           // its first lines, as many as were asked for
  std::string last_error;       // the last lines of its standard error
};

// The calling thread is its parent. kInternal: it cannot be started; kUsage: PATH has no such
// program.
runtime::Result<CommandEnd> run_command(const CommandRequest& request);

// Its output. An Error says how it ended otherwise than with exit code 0, and what it said last:
// kUsage where it ended by itself or there is no such program, kLostPeers where it was killed.
runtime::Result<std::string> output_of(const CommandRequest& request);

}  // namespace troupe::launch
