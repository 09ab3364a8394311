#include "launch/run_signals.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "actors/messages.h"

namespace troupe::launch {

RunSignals::RunSignals() : watch_([this](int number) { take(number); }) {}

runtime::NodeEnd RunSignals::run(runtime::Node& node) {
  {
    const std::scoped_lock lock(mutex_);
    node_ = &node;
    for (runtime::Message& message : std::exchange(early_, {})) {
      node.send_control("coordinator", std::move(message));
    }
  }
  runtime::NodeEnd end = node.run();
  const std::scoped_lock lock(mutex_);
  node_ = nullptr;
  has_run_ = true;
  return end;
}

void RunSignals::tell_coordinator(runtime::Message message) {
  const std::scoped_lock lock(mutex_);
  if (node_ != nullptr) {
    node_->send_control("coordinator", std::move(message));
  } else if (!has_run_) {
    early_.push_back(std::move(message));
  }
}

int RunSignals::stopped_by() {
  const std::scoped_lock lock(mutex_);
  return stopped_by_;
}

void RunSignals::take(int number) {
  const std::scoped_lock lock(mutex_);
  if (number == SIGUSR1) {
    if (node_ == nullptr) return;
    node_->send_control("coordinator", runtime::Message::of(actors::CheckpointRequest{}));
    return;
  }
  const bool nothing_to_save = node_ == nullptr && !has_run_;
  if (stopped_by_ != 0 || nothing_to_save) ::_exit(128 + number);
  stopped_by_ = number;
  if (node_ != nullptr) node_->request_stop();
}

}  // namespace troupe::launch
