#include "launch/run_signals.h"

#include <unistd.h>

#include <csignal>

#include "actors/messages.h"

namespace troupe::launch {

namespace {

constexpr auto kSameRequest = std::chrono::seconds(1);

}  // namespace

RunSignals::RunSignals(bool supervised)
    : supervised_(supervised), watch_([this](int number) { take(number); }) {}

runtime::NodeEnd RunSignals::run(runtime::Node& node) {
  {
    const std::scoped_lock lock(mutex_);
    node_ = &node;
  }
  runtime::NodeEnd end = node.run();
  const std::scoped_lock lock(mutex_);
  node_ = nullptr;
  has_run_ = true;
  return end;
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
  const auto now = std::chrono::steady_clock::now();
  if (supervised_ && stopped_by_ != 0 && now - stopped_at_ < kSameRequest) return;
  const bool nothing_to_save = node_ == nullptr && !has_run_;
  if (stopped_by_ != 0 || nothing_to_save) ::_exit(128 + number);
  stopped_by_ = number;
  stopped_at_ = now;
  if (node_ != nullptr) node_->request_stop();
}

}  // namespace troupe::launch
