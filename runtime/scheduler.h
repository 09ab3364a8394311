#pragma once

// Decides which task runs next. There are two implementations: ThreadScheduler (real threads) and
// StepScheduler (one thread, order drawn from a seed, time under control).

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"

namespace troupe::runtime {

// A scheduler's own data about a task.
struct TaskSlot {
  virtual ~TaskSlot() = default;
};

// Something that runs in slices: an actor with its mailbox.
class Task {
 public:
  virtual ~Task() = default;

  // Handles at most `limit` events. True: there is more, run it again. False: it is idle until it
  // is enqueued. Never on two threads at once.
  virtual bool run_slice(int limit) = 0;
  // The name of a thread of its own, for top or a debugger.
  virtual std::string_view name() const { return {}; }

 private:
  friend class ThreadScheduler;
  friend class StepScheduler;
  TaskSlot* slot_ = nullptr;  // the scheduler's own
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Before the task's first enqueue; from one thread at a time. `keep_alive` is held until the task
  // is retired and no thread runs it. A task with `own_thread` may block.
  virtual void add(Task& task, bool own_thread, std::shared_ptr<void> keep_alive) = 0;

  // The task, which was idle, became runnable. Any thread. Ignored for a retired task.
  virtual void enqueue(Task& task) = 0;

  // From now on no slice of these tasks begins. Waits up to `patience` (of real time) for running
  // slices, and returns the tasks that still run; their threads leave them as soon as they can. A
  // task's own slice must not call it.
  virtual std::vector<Task*> retire(const std::vector<Task*>& tasks, Duration patience) = 0;

  // For the thread that tends a node: lets tasks run and time pass, until `until` or a wake() or
  // whenever it seems fit to look at the node again.
  virtual void wait(TimePoint until) = 0;
  virtual void wake() = 0;  // any thread

  // The interval at which a node should be looked at although nothing is due, because real threads
  // do not tell when they fall idle.
  virtual Duration look_interval() const = 0;
};

}  // namespace troupe::runtime
