#include "tests/support/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "runtime/base/error.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

bool limit(int resource, std::uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0;
}

std::vector<char*> pointers_to(const Words& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: only what is safe after a fork. The exit code of a child that cannot.
int become(char* const* words, const ProcessOptions& options, int out, int err) {
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (::dup2(nothing, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) return 126;
  if (::chdir(options.folder.c_str()) != 0) return 126;
  // The tests may themselves run under nohup.
  std::signal(SIGHUP, SIG_DFL);
  if (options.largest_file_bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    if (!limit(RLIMIT_FSIZE, *options.largest_file_bytes)) return 126;
  }
  if (options.largest_memory_bytes && !limit(RLIMIT_AS, *options.largest_memory_bytes)) {
    return 126;
  }
  ::execv(words[0], words);
  return 127;
}

}  // namespace

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool wait_for(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  using std::chrono::milliseconds;
  const auto until = Clock::now() + patience;
  for (auto asked = Clock::now(); !condition(); asked = Clock::now()) {
    const auto now = Clock::now();
    if (now > until) return false;
    const Clock::duration pause =
        std::clamp<Clock::duration>(3 * (now - asked), milliseconds(1), milliseconds(100));
    std::this_thread::sleep_for(pause);
  }
  return true;
}

ForkedProcess::ForkedProcess(const std::function<int()>& body) : pid_(::fork()) {
  CHECK(pid_ >= 0, "no process can be started");
  if (pid_ == 0) ::_exit(body());
}

ForkedProcess::~ForkedProcess() {
  if (running()) {
    send(SIGKILL);
    reap(true);
  }
}

void ForkedProcess::send(int signal_number) const { ::kill(pid_, signal_number); }

bool ForkedProcess::reap(bool block) {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, block ? 0 : WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

int ForkedProcess::status() {
  reap(true);
  return status_.value();
}

Process::Output::Output() {
  std::string name = "/tmp/troupe-output-XXXXXX";
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  CHECK(file_ >= 0, "no temporary file");
  ::unlink(name.c_str());
}

Process::Output::~Output() { ::close(file_); }

std::string Process::Output::text() const {
  struct stat status {};
  CHECK(::fstat(file_, &status) == 0);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  CHECK(::pread(file_, text.data(), text.size(), 0) == status.st_size);
  return text;
}

Process::Process(const Words& words, const ProcessOptions& options)
    : timeout_(options.timeout), child_([&, pointers = pointers_to(words)] {
        return become(pointers.data(), options, out_.number(), err_.number());
      }) {}

bool Process::wait_until(const std::function<bool()>& condition) {
  bool holds = false;
  wait_for([&] { return (holds = condition()) || !running(); }, timeout_);
  return holds;
}

ProcessEnd Process::wait() {
  ProcessEnd end;
  end.timed_out = !wait_for([&] { return !running(); }, timeout_);
  if (end.timed_out) send(SIGKILL);
  const int status = child_.status();
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  end.out = out_.text();
  end.err = err_.text();
  return end;
}

}  // namespace troupe
