#pragma once

// What signals mean to a run: SIGINT, SIGTERM and SIGHUP ask its node to stop, the second of them
// ends the process at once, without waiting for a disk, and so does the first before the run has
// begun, when there is nothing to save. SIGUSR1 asks for a checkpoint.
//
// A process below a supervisor gets a signal that is sent to all processes of the run (as service
// managers and batch systems do) twice, the second time from the supervisor: what follows within a
// second is then the same request. People who insist reach the supervisor, which kills.

#include <chrono>
#include <functional>
#include <mutex>

#include "launch/signal_watch.h"
#include "runtime/node.h"

namespace troupe::launch {

// One per run, made before the run's first thread (see SignalWatch).
class RunSignals {
 public:
  // `returns`: there is something to save before there is a node, which others have. `early` is
  // called on the watch's thread with the signal that ends the process before the run has begun;
  // may be null.
  explicit RunSignals(bool supervised = false, bool returns = false,
                      std::function<void(int)> early = {});

  // From here on there is something to save: a signal waits until there is a node to stop. Not
  // while `early` runs.
  void begin();
  // Begins, if that was not done. The node runs on the calling thread until it ends; meanwhile
  // signals reach it. Returns how it ended.
  runtime::NodeEnd run(runtime::Node& node);
  // The signal that asked the run to stop; 0 for none. Any thread.
  int stopped_by();
  // As such a signal asks, but by somebody else, and also before there is a node: that one ends as
  // soon as it runs. The first signal that follows within its end is the same request. Any thread.
  void leave();
  bool is_leaving();

 private:
  void take(int number);

  const bool supervised_, returns_;
  const std::function<void(int)> early_;
  std::mutex mutex_;
  runtime::Node* node_ = nullptr;
  bool begun_ = false;
  bool leaving_ = false;
  int stopped_by_ = 0;
  std::chrono::steady_clock::time_point stopped_at_;
  SignalWatch watch_;  // the last to begin and the first to end
};

}  // namespace troupe::launch
