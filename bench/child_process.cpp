#include "bench/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace troupe::bench {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Error failure(std::string message) { return {ErrorKind::kInternal, std::move(message)}; }

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(
    const std::vector<std::string>& arguments) {
  // A child that is gone shows as an answer that does not come.
  std::signal(SIGPIPE, SIG_IGN);
  int requests[2], answers[2];
  // Closed on exec: a later child must not hold an earlier one's input open.
  CHECK(pipe2(requests, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, requests[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, pointers.front(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(requests[0]);
  close(answers[1]);
  if (error != 0) {
    close(requests[1]);
    close(answers[0]);
    return failure(arguments.front() + " cannot be started: " + std::strerror(error));
  }
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(process, fdopen(requests[1], "w"), fdopen(answers[0], "r")));
}

ChildProcess::~ChildProcess() {
  std::fclose(requests_);
  std::fclose(answers_);
  waitpid(process_, nullptr, 0);
}

Result<std::string> ChildProcess::answer() {
  char* line = nullptr;
  std::size_t size = 0;
  const ssize_t length = getline(&line, &size, answers_);
  std::string text(line, length > 0 ? static_cast<std::size_t>(length) : 0);
  std::free(line);
  while (text.ends_with('\n')) text.pop_back();
  if (length < 0) return failure("it ended without an answer");
  if (!text.starts_with("ok")) return failure(text);
  return text.size() > 3 ? text.substr(3) : std::string();
}

Result<std::string> ChildProcess::ask(const std::string& request) {
  std::fputs((request + "\n").c_str(), requests_);
  std::fflush(requests_);
  return answer();
}

}  // namespace troupe::bench
