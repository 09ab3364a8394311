#pragma once

// The meaning of signals to a run. The first request to end (SIGINT, SIGTERM, SIGHUP; see
// EndRequests) asks its node to stop. A second request ends the process at once, without waiting
// for a disk. So does the first one before the run has begun, when there is nothing to save.
// SIGUSR1 asks for a checkpoint.
//
// Below a supervisor a second request changes nothing, nor does one after the run: the supervisor
// hears it too, and kills.

#include <functional>
#include <mutex>

#include "launch/processes/signal_watch.h"
#include "runtime/base/clock.h"
#include "runtime/node/node.h"

namespace troupe::launch {

struct RunSignalsOptions {
  bool supervised = false;  // `troupe run` started this process, and looks after it
  // Other processes have a state to save before this one has a node.
  bool returns = false;
  // Called on the watch's thread with the signal that ends the process before the run has begun;
  // may be null.
  std::function<void(int)> early = {};
  runtime::Duration moment = EndRequests::kMoment;
};

// One per run, made before the run's first thread (see SignalWatch).
class RunSignals {
 public:
  explicit RunSignals(const RunSignalsOptions& options);

  // From here on there is something to save: a signal waits until there is a node to stop. Not
  // while `early` runs.
  void begin();
  // Begins, if that was not done. The node runs on the calling thread until it ends; meanwhile
  // signals reach it. Returns how it ended.
  runtime::NodeEnd run(runtime::Node& node);
  // The signal that asked the run to stop; 0 for none. Any thread.
  int stopped_by();
  // Asks the node to stop, as a signal does, but for another reason. A node that is still to come
  // stops as soon as it runs. Any thread.
  void leave();
  bool is_leaving();

 private:
  void take(int number, int request);

  const RunSignalsOptions options_;
  std::mutex mutex_;
  runtime::Node* node_ = nullptr;
  bool begun_ = false;
  bool leaving_ = false;
  int stopped_by_ = 0;
  SignalWatch watch_;  // the last to begin and the first to end
};

}  // namespace troupe::launch
