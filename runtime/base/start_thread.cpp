#include "runtime/base/start_thread.h"

#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace troupe::runtime {
namespace {

// A thread inherits what is held when it is made.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int number :
         {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD}) {
      sigaddset(&held, number);
    }
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Error no_thread(std::string_view whom, std::string_view why) {
  return {ErrorKind::kInternal,
          fmt::format("the system gives no thread for {}: {}; it may have more with 'ulimit -u' "
                      "(threads of this user) or 'ulimit -v' (address space)",
                      whom, why)};
}

Result<std::thread> start_thread(std::string_view whom, std::function<void()> work) {
  const HeldSignals held;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    return no_thread(whom, error.code().message());
  }
}

std::thread need_thread(std::string_view whom, std::function<void()> work) {
  auto thread = start_thread(whom, std::move(work));
  if (!thread.ok()) throw NoThread(thread.error().message);
  return std::move(*thread);
}

}  // namespace troupe::runtime
