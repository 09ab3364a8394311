#include "tests/main/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "runtime/base/error.h"

namespace troupe {
namespace {

constexpr auto kPollEvery = std::chrono::milliseconds(1);

int nameless_file() {
  std::string name = "/tmp/troupe-output-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  CHECK(file >= 0, "no temporary file");
  ::unlink(name.c_str());
  return file;
}

std::string content(int file) {
  struct stat status {};
  CHECK(::fstat(file, &status) == 0);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  CHECK(::pread(file, text.data(), text.size(), 0) == status.st_size);
  return text;
}

bool limit(int resource, std::uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0;
}

// Between fork and exec: only what is safe after a fork.
[[noreturn]] void become(char* const* words, const ProcessOptions& options, int out, int err) {
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (::dup2(nothing, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(126);
  if (::chdir(options.folder.c_str()) != 0) ::_exit(126);
  // The tests may themselves run under nohup.
  std::signal(SIGHUP, SIG_DFL);
  if (options.largest_file_bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    if (!limit(RLIMIT_FSIZE, *options.largest_file_bytes)) ::_exit(126);
  }
  if (options.largest_memory_bytes && !limit(RLIMIT_AS, *options.largest_memory_bytes)) {
    ::_exit(126);
  }
  ::execv(words[0], words);
  ::_exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& words, const ProcessOptions& options)
    : out_(nameless_file()),
      err_(nameless_file()),
      deadline_(std::chrono::steady_clock::now() + options.timeout) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_ = ::fork();
  CHECK(pid_ >= 0, "cannot fork");
  if (pid_ == 0) become(pointers.data(), options, out_, err_);
}

Process::~Process() {
  if (!status_) {
    ::kill(pid_, SIGKILL);
    reap(true);
  }
  ::close(out_);
  ::close(err_);
}

void Process::send(int signal_number) const { ::kill(pid_, signal_number); }

bool Process::running() { return !reap(false); }

bool Process::reap(bool block) {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, block ? 0 : WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

ProcessEnd Process::wait() {
  ProcessEnd end;
  while (!reap(false)) {
    if (std::chrono::steady_clock::now() > deadline_) {
      end.timed_out = true;
      ::kill(pid_, SIGKILL);
      reap(true);
      break;
    }
    std::this_thread::sleep_for(kPollEvery);
  }
  if (WIFEXITED(*status_)) end.exit_code = WEXITSTATUS(*status_);
  if (WIFSIGNALED(*status_)) end.signal = WTERMSIG(*status_);
  end.out = content(out_);
  end.err = content(err_);
  return end;
}

}  // namespace troupe
