#pragma once

// Signals of a run. The first request to end (SIGINT, SIGTERM, SIGHUP; see EndRequests) asks the
// node to stop. A second request ends the process at once, without waiting for a disk. So does the
// first one before there is a node, because nothing is there to save. SIGUSR1 asks for a
// checkpoint.
//
// Below a supervisor a second request changes nothing: the supervisor hears it too, and kills.

#include <mutex>

#include "launch/end_requests.h"
#include "launch/signal_watch.h"
#include "runtime/base/clock.h"
#include "runtime/node.h"

namespace troupe::launch {

struct RunSignalsOptions {
  bool supervised = false;  // `troupe run` started this process, and looks after it
  // Other processes have a state to save before this one has a node.
  bool returns = false;
  runtime::Duration moment = EndRequests::kMoment;
};

// One per run, made before the run's first thread (see SignalWatch).
class RunSignals {
 public:
  explicit RunSignals(const RunSignalsOptions& options);

  // The node runs on the calling thread until it ends; meanwhile signals reach it. Returns how it
  // ended.
  runtime::NodeEnd run(runtime::Node& node);
  // The signal that asked the run to stop; 0 for none. Any thread.
  int stopped_by();
  // Asks the node to stop, as a signal does, but for another reason. A node that is still to come
  // stops as soon as it runs. Any thread.
  void leave();
  bool is_leaving();

 private:
  void take(int number);

  const RunSignalsOptions options_;
  std::mutex mutex_;
  runtime::Node* node_ = nullptr;
  bool has_run_ = false;
  bool leaving_ = false;
  int stopped_by_ = 0;
  const runtime::SteadyClock clock_;
  EndRequests requests_;
  SignalWatch watch_;  // the last to begin and the first to end
};

}  // namespace troupe::launch
