#pragma once

// SIGINT, SIGTERM, SIGHUP and SIGUSR1 as calls on a thread of their own instead of interrupts, with
// the requests to end counted that they carry.

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>

#include "runtime/base/clock.h"

namespace troupe::launch {

// From here on the signals that a SignalWatch takes wait for the next watch that is made, so that
// they do not cut off what comes before it.
void hold_signals();

// Counts the requests to end among the signals that carry them. `timeout` signals its child and
// then its whole process group, a terminal signals a whole pipeline, and service managers and batch
// systems signal every process of a run: each is one request that arrives more than once. One
// thread.
class EndRequests {
 public:
  // Signals this close to the one that began a request belong to it.
  static constexpr runtime::Duration kMoment = std::chrono::seconds(1);

  explicit EndRequests(runtime::Duration moment = kMoment) : moment_(moment) {}

  // Takes in a signal that arrives at `now`. Returns the number of the request that it begins,
  // from 1; none if it repeats the one before.
  std::optional<int> hear(runtime::TimePoint now) {
    if (count_ > 0 && now - began_ < moment_) return std::nullopt;
    began_ = now;
    return ++count_;
  }

 private:
  const runtime::Duration moment_;
  runtime::TimePoint began_{0};
  int count_ = 0;
};

class SignalWatch {
 public:
  // `request`: the number of the request to end that the signal begins; 0 for SIGUSR1.
  using OnSignal = std::function<void(int number, int request)>;

  // Make it before any other thread: those inherit the blocked signals. `on_signal` runs on the
  // watch's thread, for each SIGUSR1 and for each signal that begins a request. SIGHUP stays
  // ignored where it was, as nohup has it.
  explicit SignalWatch(OnSignal on_signal, runtime::Duration moment = EndRequests::kMoment);
  // Unblocks the signals again, unless they are to wait as after hold_signals().
  ~SignalWatch();
  void hold_signals_at_end() { holds_at_end_ = true; }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  sigset_t watched_;
  std::atomic<bool> ending_ = false;
  bool holds_at_end_ = false;
  std::thread thread_;
};

}  // namespace troupe::launch
