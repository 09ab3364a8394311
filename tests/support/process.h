#pragma once

// Programs and forks of this process as children: without a shell, output captured, killed when
// they take too long.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

using Words = std::vector<std::string>;
Words operator+(Words words, const Words& more);

// Decides only when a hang becomes a failure, however busy the machine is.
inline constexpr std::chrono::milliseconds kHang = std::chrono::seconds(120);

// Asks every millisecond, or less often where the answer takes long, so that what is waited for
// gets the processor. False: the condition does not hold within the time.
bool wait_for(const std::function<bool()>& condition, std::chrono::milliseconds patience = kHang);

// A child that runs `body` and exits with what that returns. Fork while this process has one
// thread, or where the body starts a program at once.
class ForkedProcess {
 public:
  // CHECKs that the system gives a process.
  explicit ForkedProcess(const std::function<int()>& body);
  // Kills a child that still runs.
  ~ForkedProcess();
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal_number) const;
  bool running() { return !reap(false); }
  // Waits for its end. The status is that of waitpid(); 0: it has returned 0.
  int status();

 private:
  bool reap(bool block);

  pid_t pid_ = -1;
  std::optional<int> status_;
};

struct ProcessOptions {
  std::string folder = ".";  // current folder of the child
  // SIGKILL when wait() has taken so long, which only decides when a hang becomes a failure.
  std::chrono::milliseconds timeout = kHang;
  // RLIMIT_FSIZE with SIGXFSZ ignored: writing beyond it fails, as on a full disk.
  std::optional<std::uint64_t> largest_file_bytes = std::nullopt;
  // RLIMIT_AS: what needs more address space fails, as where memory is short.
  std::optional<std::uint64_t> largest_memory_bytes = std::nullopt;
};

struct ProcessEnd {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
};

class Process {
 public:
  // words[0] is the program's path. CHECKs that it can be started.
  explicit Process(const Words& words, const ProcessOptions& options = {});

  pid_t pid() const { return child_.pid(); }
  void send(int signal_number) const { child_.send(signal_number); }
  bool running() { return child_.running(); }
  // Waits for the condition while the process runs. False: it has ended, or `timeout` has passed.
  bool wait_until(const std::function<bool()>& condition);
  ProcessEnd wait();
  // Its standard output and error so far.
  std::string out() const { return out_.text(); }
  std::string err() const { return err_.text(); }

 private:
  // A file without a name that takes a stream of the child.
  class Output {
   public:
    Output();
    ~Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    int number() const { return file_; }
    std::string text() const;

   private:
    int file_;
  };

  Output out_, err_;
  const std::chrono::milliseconds timeout_;
  ForkedProcess child_;
};

}  // namespace troupe
