#include "launch/processes/signal_watch.h"

#include <ctime>
#include <utility>

#include "runtime/base/start_thread.h"

namespace troupe::launch {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  // A blocked signal arrives here even if it is ignored.
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void hold_signals() {
  const sigset_t watched = watched_signals();
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);
}

SignalWatch::SignalWatch(OnSignal on_signal, runtime::Duration moment)
    : watched_(watched_signals()) {
  pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
  thread_ = runtime::need_thread("signals", [this, moment, on_signal = std::move(on_signal)] {
    EndRequests requests(moment);
    while (!ending_) {
      const int number = sigwaitinfo(&watched_, nullptr);
      if (number <= 0 || ending_) continue;
      const auto request = number == SIGUSR1 ? 0 : requests.hear(runtime::steady_now());
      if (request) on_signal(number, *request);
    }
  });
}

SignalWatch::~SignalWatch() {
  ending_ = true;
  ::pthread_kill(thread_.native_handle(), SIGUSR1);  // to that thread alone, which wakes
  thread_.join();
  if (!holds_at_end_) pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
}

}  // namespace troupe::launch
