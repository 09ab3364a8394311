#include "runtime/step_scheduler.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::runtime {

struct StepScheduler::Slot final : TaskSlot {
  bool retired = false;
  std::shared_ptr<void> keep_alive;
};

StepScheduler::StepScheduler(std::uint64_t seed, ManualClock& clock, Duration event_time)
    : seed_(seed), clock_(clock), event_time_(event_time) {}

StepScheduler::~StepScheduler() = default;

bool StepScheduler::run_one() {
  if (runnable_.empty()) return false;
  const std::uint64_t draw = mix64(seed_ ^ mix64(++steps_));
  const auto chosen = runnable_.begin() + static_cast<std::ptrdiff_t>(draw % runnable_.size());
  Task* task = *chosen;
  runnable_.erase(chosen);
  clock_.advance(event_time_);
  if (task->run_slice(1)) enqueue(*task);
  return true;
}

void StepScheduler::add(Task& task, bool /*own_thread*/, std::shared_ptr<void> keep_alive) {
  slots_.push_back(std::make_unique<Slot>());
  slots_.back()->keep_alive = std::move(keep_alive);
  task.slot_ = slots_.back().get();
}

void StepScheduler::enqueue(Task& task) {
  if (!static_cast<Slot*>(task.slot_)->retired) runnable_.push_back(&task);
}

std::vector<Task*> StepScheduler::retire(const std::vector<Task*>& tasks, Duration /*patience*/) {
  for (Task* task : tasks) {
    std::erase(runnable_, task);
    auto* slot = static_cast<Slot*>(task->slot_);
    slot->retired = true;
    slot->keep_alive.reset();
  }
  return {};
}

void StepScheduler::wait(TimePoint until) {
  woken_ = false;
  if (runnable_.empty()) {
    CHECK(until != TimePoint::max(), "nothing is runnable and nothing is due");
    if (until > clock_.now()) clock_.advance(until - clock_.now());
    return;
  }
  while (run_one() && !woken_ && clock_.now() < until) {
  }
}

}  // namespace troupe::runtime
