#pragma once

// A program that is run to its end, within a time and with bounded output. No shell reads its
// words.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
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
  bool is_cut = false;          // it has said more than that
  std::string last_error;       // the last lines of its standard error, each the shown part of one
};

// The calling thread is its parent. kInternal: it cannot be started; kUsage: PATH has no such
// program.
runtime::Result<CommandEnd> run_command(const CommandRequest& request);

// An Error where it ended otherwise than with exit code 0, which says how, and what it said last:
// kUsage where it ended by itself, kLostPeers where it was killed.
runtime::Result<void> check_end(const CommandRequest& request, const CommandEnd& ended);
// Runs it. An Error is one of these.
runtime::Result<void> carry_out(const CommandRequest& request);
// The same, and all that it has printed. kUsage: that is more than `most_output`.
runtime::Result<std::string> output_of(const CommandRequest& request);

// A tool's words, as a line of so many bytes at most, for people: blanks for control characters,
// escapes for other hidden ones (runtime::printable), "..." in the place of what is left out.
std::string shown_line(std::string_view text, std::size_t most = 1000);

}  // namespace troupe::launch
