#pragma once

// The signals that end a verb, where no file is half-written and nothing more is to be shown.

#include <atomic>
#include <chrono>

#include "launch/processes/signal_watch.h"
#include "runtime/base/error.h"

namespace troupe {

// Made before any thread; one thread asks.
class EndingSignal {
 public:
  // The number of the one that has asked to end; 0: none has.
  int number() const { return number_; }
  // An error once one has; for event_progress().
  runtime::Result<void> check() const;
  // Waits so long, or until one comes. False: it is time to end.
  bool pause(std::chrono::milliseconds time) const;
  // The exit code for it; `otherwise`: where none has come.
  int code(int otherwise) const;

 private:
  std::atomic<int> number_ = 0;
  launch::SignalWatch watch_{[this](int number, int request) {
    if (request > 0) number_ = number;
  }};
};

}  // namespace troupe
