#include "runtime/base/start_thread.h"

#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace troupe::runtime {

Error no_thread(std::string_view whom, std::string_view why) {
  return {ErrorKind::kInternal,
          fmt::format("the system gives no thread for {}: {}; it may have more with 'ulimit -u' "
                      "(threads of this user) or 'ulimit -v' (address space)",
                      whom, why)};
}

Result<std::thread> start_thread(std::string_view whom, std::function<void()> work) {
  sigset_t held, before;
  sigemptyset(&held);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD}) {
    sigaddset(&held, number);
  }
  pthread_sigmask(SIG_BLOCK, &held, &before);
  Result<std::thread> thread = Error{};
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error& error) {
    thread = no_thread(whom, error.code().message());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

std::thread need_thread(std::string_view whom, std::function<void()> work) {
  auto thread = start_thread(whom, std::move(work));
  CHECK(thread.ok(), thread.error().message);
  return std::move(*thread);
}

}  // namespace troupe::runtime
