#pragma once

// Runs tasks on the caller's thread, one event at a time, in an order drawn from a seed; moves a
// ManualClock when nothing is left to run. The same seed and the same tasks give the same run.
//
//   ManualClock clock;
//   StepScheduler scheduler(seed, clock);
//   Node node(plan, factory, options, clock, log, scheduler);
//   NodeEnd end = node.run();                    // or begin(), run_one() and tend() by hand

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/scheduler.h"

namespace troupe::runtime {

class StepScheduler final : public Scheduler {
 public:
  // Each event takes `event_time`; with none, time stands still until nothing is runnable, which in
  // a plan that is never idle is never. The clock outlives the scheduler.
  StepScheduler(std::uint64_t seed, ManualClock& clock, Duration event_time = Duration(0));
  ~StepScheduler() override;

  // Runs one event of a runnable task, chosen by the seed. False: none is runnable.
  bool run_one();
  std::size_t runnable() const { return runnable_.size(); }
  std::uint64_t steps() const { return steps_; }

  // own_thread makes no difference here: a task that blocks blocks everyone.
  void add(Task& task, bool own_thread, std::shared_ptr<void> keep_alive) override;
  void enqueue(Task& task) override;
  std::vector<Task*> retire(const std::vector<Task*>& tasks, Duration patience) override;
  // Runs one event and more until none is runnable, wake() was called or `until` has come; with
  // none to begin with, moves the clock to `until`.
  void wait(TimePoint until) override;
  void wake() override { woken_ = true; }
  // Nothing changes between its calls.
  Duration look_interval() const override { return Duration::max(); }

 private:
  struct Slot;

  std::uint64_t seed_;
  ManualClock& clock_;
  Duration event_time_;
  std::uint64_t steps_ = 0;
  bool woken_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Task*> runnable_;
};

}  // namespace troupe::runtime
