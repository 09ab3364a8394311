#include "launch/run/run_signals.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "actors/messages.h"
#include "runtime/base/new_file.h"

namespace troupe::launch {

RunSignals::RunSignals(const RunSignalsOptions& options)
    : options_(options),
      watch_([this](int number, int request) { take(number, request); }, options.moment) {
  // A request to end that comes when the run is over would cut off the process's last words.
  if (options.supervised) watch_.hold_signals_at_end();
}

void RunSignals::begin() {
  const std::scoped_lock lock(mutex_);
  begun_ = true;
}

runtime::NodeEnd RunSignals::run(runtime::Node& node) {
  {
    const std::scoped_lock lock(mutex_);
    begun_ = true;
    node_ = &node;
    if (leaving_ || stopped_by_ != 0) node.request_stop();
  }
  runtime::NodeEnd end = node.run();
  const std::scoped_lock lock(mutex_);
  node_ = nullptr;
  return end;
}

int RunSignals::stopped_by() {
  const std::scoped_lock lock(mutex_);
  return stopped_by_;
}

void RunSignals::leave() {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(leaving_, true) || stopped_by_ != 0) return;
  if (node_ != nullptr) node_->request_stop();
}

bool RunSignals::is_leaving() {
  const std::scoped_lock lock(mutex_);
  return leaving_;
}

void RunSignals::take(int number, int request) {
  const std::scoped_lock lock(mutex_);
  if (number == SIGUSR1) {
    if (node_ == nullptr) return;
    node_->send_control("coordinator", runtime::Message::of(actors::CheckpointRequest{}));
    return;
  }
  // A second request is the supervisor's to act on: it kills everything.
  if (options_.supervised && request > 1) return;
  const bool nothing_to_save = !begun_ && !options_.returns;
  if (nothing_to_save && options_.early) options_.early(number);
  if (nothing_to_save) runtime::NewFile::give_up_all();
  if (request > 1 || nothing_to_save) ::_exit(128 + number);
  stopped_by_ = number;
  // The node would give up what has not ended yet if it were asked twice.
  if (node_ != nullptr && !leaving_) node_->request_stop();
}

}  // namespace troupe::launch
