#pragma once

// A program that runs below this process and cannot outlive it.

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/processes/line_splitter.h"
#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// The descriptor on which a child finds what tell() says to it, as lines; it ends when the parent
// is gone. See LostMembers.
inline constexpr int kParentLineDescriptor = 3;

struct ChildOptions {
  // The program's path, not looked for in PATH, and its arguments.
  std::vector<std::string> words;
  // Take the child's standard output and error, line by line, on the thread that calls
  // wait_for_children(). Null, the default: the child shares those of this process.
  LineSink out;
  LineSink err;
  // Its standard input, which it can also open anew at /dev/stdin; default empty.
  std::string input{};
  // When it has ended by itself, what it has started in its session goes on.
  bool leaves_others = false;
};

// How a process ended.
struct ChildEnd {
  int exit_code = 0;  // 0 when a signal ended it
  int signal = 0;     // 0 when it ended by itself

  // "ended with exit code 3", "was killed by signal 9 (Killed)".
  std::string text() const;
  bool operator==(const ChildEnd&) const = default;
};

// All calls from one thread. That thread must live as long as the child: the kernel ends a child
// with the thread that started it, not with the process.
class ChildProcess {
 public:
  // Starts the program. It has its input, the line of tell(), no other descriptor of ours, no
  // blocked signal and a session of its own, so that what is typed at a terminal reaches us
  // alone. When this process ends, however that comes, the kernel kills it; not what it has itself
  // started, to which only the end of that line tells it.
  //
  // kInternal, naming the program: it cannot be started (missing, not executable, no resources).
  static runtime::Result<std::unique_ptr<ChildProcess>> start(const ChildOptions& options);

  // Kills it, with what it has started in its session, if it still runs, and waits until it is
  // gone.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // None while it runs. Changes only in wait_for_children(); by then the sinks have had all lines.
  const std::optional<ChildEnd>& end() const { return end_; }

  // Sends it a signal; nothing once it has ended. SIGKILL reaches all it has started in its
  // session.
  void send(int signal_number) const;
  // Tells it a line, without a line break; never blocks. Nothing once it has ended, and nothing of
  // what is told faster than it reads, beyond some hundred lines.
  void tell(const std::string& line) const;

 private:
  friend void wait_for_children(std::span<const std::unique_ptr<ChildProcess>> children,
                                int wake_descriptor, std::optional<runtime::Duration> timeout);

  // One of its streams, or nothing when that is shared.
  struct Stream {
    runtime::Descriptor pipe;
    LineSplitter lines;

    // Hands on what has arrived, at most `most` bytes; closes at the end.
    void read(std::size_t most);
    void finish();
  };

  ChildProcess(pid_t pid, bool leaves_others, runtime::Descriptor process, runtime::Descriptor line,
               Stream out, Stream err);
  // Reads what has arrived, and finds out whether it has ended.
  void look();

  const pid_t pid_;
  const bool leaves_others_;
  runtime::Descriptor process_;  // a pidfd: readable once it has ended
  runtime::Descriptor line_;     // our end of what it is told
  Stream streams_[2];
  std::optional<ChildEnd> end_;
};

// Sleeps until something happens to one of the children (a line, an end), `wake_descriptor` can be
// read (-1: none), or the time is over (none: for ever); then takes it in: lines go to their sinks,
// ends show in end(). Returns at once if every child has ended and there is nothing else to wait
// for. May return early for no reason.
void wait_for_children(std::span<const std::unique_ptr<ChildProcess>> children,
                       int wake_descriptor = -1,
                       std::optional<runtime::Duration> timeout = std::nullopt);

}  // namespace troupe::launch
