#include "launch/signal_watch.h"

#include <csignal>
#include <ctime>
#include <utility>

namespace troupe::launch {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  return set;
}

}  // namespace

SignalWatch::SignalWatch(std::function<void(int)> on_signal) {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this, set, on_signal = std::move(on_signal)] {
    constexpr timespec kPause{0, 100'000'000};
    while (!ending_) {
      const int number = sigtimedwait(&set, nullptr, &kPause);
      if (number > 0) on_signal(number);
    }
  });
}

SignalWatch::~SignalWatch() {
  ending_ = true;
  thread_.join();
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace troupe::launch
