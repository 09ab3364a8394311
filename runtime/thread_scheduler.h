#pragma once

// Runs tasks on N shared threads, and each own_thread task on one more.
//
// Every worker has a queue. A running worker keeps the first task that it makes runnable, if its
// queue is empty: the data is in its cache, and it will soon be free. Further tasks go to a
// sleeping worker. A worker without work steals. No task waits longer than kRescan while a worker
// is idle.

#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/scheduler.h"

namespace troupe::runtime {

class ThreadScheduler final : public Scheduler {
 public:
  // 1 to 64 shared threads, started here. The clock is that of wait() and outlives the scheduler.
  ThreadScheduler(int threads, const Clock& clock);
  ~ThreadScheduler() override;

  // When every task is retired: ends the threads, leaving behind those that are still in one. The
  // destructor does so too.
  void shut_down();

  // The first thread that the system did not give, a shared one or an added task's own. The caller
  // then enqueues nothing, and retires the tasks that it added.
  std::optional<Error> refused() const;

  void add(Task& task, bool own_thread, std::shared_ptr<void> keep_alive) override;
  void enqueue(Task& task) override;
  std::vector<Task*> retire(const std::vector<Task*>& tasks, Duration patience) override;
  void wait(TimePoint until) override;
  void wake() override;
  Duration look_interval() const override { return std::chrono::milliseconds(20); }

 private:
  struct State;
  // Shared with the threads, since an abandoned one may outlive this object.
  std::shared_ptr<State> state_;
};

}  // namespace troupe::runtime
