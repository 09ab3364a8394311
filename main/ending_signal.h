#pragma once

// The signals that end work on files where no file is half-written, and what is shown until one
// comes.

#include <atomic>
#include <chrono>
#include <thread>

#include "launch/processes/signal_watch.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe {

// Made before any thread; one thread asks.
class EndingSignal {
 public:
  // An error once a signal has asked to end; for event_progress().
  runtime::Result<void> check() const;
  // The exit code of work that has ended with `error`, which is printed: that of the signal where
  // one has come.
  int report_end(const runtime::Error& error) const;

 private:
  std::atomic<int> number_ = 0;  // 0: none has come
  launch::SignalWatch watch_{[this](int number, int request) {
    if (request > 0) number_ = number;
  }};
};

// Of a verb that shows something until it is ended. Made before any thread.
class Ending {
 public:
  // The one that asked to end; 0: none did.
  int signal() const { return signal_; }
  // False: it is time to end.
  bool pause(std::chrono::milliseconds time) const {
    const auto until = runtime::steady_now() + time;
    while (signal_ == 0 && runtime::steady_now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return signal_ == 0;
  }
  // `otherwise` where none did.
  int code(int otherwise) const { return signal_ == 0 ? otherwise : 128 + signal_; }

 private:
  std::atomic<int> signal_ = 0;
  launch::SignalWatch watch_{[this](int number, int request) {
                               if (request > 0) signal_ = number;
                             },
                             runtime::Duration{0}};
};

}  // namespace troupe
