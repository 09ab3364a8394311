#include "launch/run_signals.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "actors/messages.h"

namespace troupe::launch {

namespace {

constexpr auto kSameRequest = std::chrono::seconds(1);

}  // namespace

RunSignals::RunSignals(bool supervised, bool returns, std::function<void(int)> early)
    : supervised_(supervised),
      returns_(returns),
      early_(std::move(early)),
      watch_([this](int number) { take(number); }) {}

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

void RunSignals::take(int number) {
  const std::scoped_lock lock(mutex_);
  if (number == SIGUSR1) {
    if (node_ == nullptr) return;
    node_->send_control("coordinator", runtime::Message::of(actors::CheckpointRequest{}));
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (supervised_ && stopped_by_ != 0 && now - stopped_at_ < kSameRequest) return;
  const bool nothing_to_save = !begun_ && !returns_;
  if (nothing_to_save && early_) early_(number);
  if (stopped_by_ != 0 || nothing_to_save) ::_exit(128 + number);
  stopped_by_ = number;
  stopped_at_ = now;
  // A second request would give up on what has not ended yet.
  if (node_ != nullptr && !leaving_) node_->request_stop();
}

}  // namespace troupe::launch
