#pragma once

// The signals that end work on files where no file is half-written.

#include <atomic>

#include "launch/processes/signal_watch.h"
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

}  // namespace troupe
