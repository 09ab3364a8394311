#pragma once

// A program run as a child: no shell, output captured, killed when it takes too long.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct ProcessOptions {
  std::string folder = ".";  // current folder of the child
  // SIGKILL after it. Long, because it only decides when a hang becomes a failure.
  std::chrono::milliseconds timeout = std::chrono::seconds(120);
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
  explicit Process(const std::vector<std::string>& words, const ProcessOptions& options = {});
  // Kills a child that was not waited for.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal_number) const;
  bool running();
  // Once.
  ProcessEnd wait();

 private:
  bool reap(bool block);

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;  // files without a name
  std::chrono::steady_clock::time_point deadline_;
  std::optional<int> status_;
};

}  // namespace troupe
