#pragma once

// SIGINT, SIGTERM, SIGHUP and SIGUSR1 as calls on a thread of their own instead of interrupts.

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace troupe::launch {

// From here on the signals that a SignalWatch takes wait for the next watch that is made, so that
// they do not cut off what comes before it.
void hold_signals();

class SignalWatch {
 public:
  // Make it before any other thread: those inherit the blocked signals. `on_signal(number)` runs on
  // the watch's thread, once per signal. SIGHUP stays ignored where it was, as nohup has it.
  explicit SignalWatch(std::function<void(int)> on_signal);
  // Unblocks the signals again.
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  sigset_t watched_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::launch
