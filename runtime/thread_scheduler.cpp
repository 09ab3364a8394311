#include "runtime/thread_scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/start_thread.h"

namespace troupe::runtime {
namespace {

// Events a worker handles of one task before the next one's turn.
constexpr int kSliceEvents = 64;
// The longest time that a runnable task may wait behind a running one while another worker sleeps.
constexpr std::chrono::milliseconds kRescan{1};
constexpr std::chrono::microseconds kRetirePoll{100};
constexpr std::chrono::hours kLongestWait{1};

struct Worker;

struct Slot final : TaskSlot {
  Task* task = nullptr;
  Worker* own = nullptr;  // its own thread; nullptr: any shared one
  std::atomic<bool> retired{false};
  std::shared_ptr<void> keep_alive;
};

// A task is in one queue, or running on one worker, or neither; it passes from one to the other
// under the locks of the workers concerned, so that retire() cannot miss it.
struct Worker {
  std::mutex mutex;
  std::condition_variable wakened;
  std::deque<Slot*> queue;
  Slot* running = nullptr;
  bool sleeping = false;
  bool sound = false;  // of a sleeping one: until it is notified
  bool slept = false;  // since it last ran a task
  bool quit = false;
  std::uint64_t shared_bit = 0;  // 0: an own_thread task's
  const void* home = nullptr;    // its scheduler's State
  std::thread thread;
};

thread_local Worker* this_worker = nullptr;

void push(Worker& worker, Slot* slot) {
  const std::scoped_lock lock(worker.mutex);
  if (slot->retired.load()) return;
  worker.queue.push_back(slot);
  if (worker.sleeping) worker.wakened.notify_one();
}

// Under the worker's lock. Retired tasks may still lie in a queue; they are passed over.
Slot* pop(Worker& worker) {
  while (!worker.queue.empty()) {
    Slot* slot = worker.queue.front();
    worker.queue.pop_front();
    if (!slot->retired.load()) return slot;
  }
  return nullptr;
}

}  // namespace

struct ThreadScheduler::State {
  explicit State(const Clock& clock_in) : clock(clock_in) {}

  bool start(const std::shared_ptr<State>& self, Worker& worker, std::string_view whom);
  Worker* start_own_worker(const std::shared_ptr<State>& self, std::string_view whom);
  void work(Worker& worker);
  Slot* next(Worker& worker, Slot* before, bool again);
  Slot* find_work(Worker& worker, std::unique_lock<std::mutex>& lock);
  Slot* steal(Worker& thief);
  void sleep(Worker& worker, std::unique_lock<std::mutex>& lock);
  void set_a_watch();
  bool hand_to_sleeper(Slot* slot);
  bool running(const Slot* slot);

  const Clock& clock;
  std::vector<Worker*> shared;  // constant once the constructor is done
  std::uint64_t all_shared = 0;
  std::atomic<std::uint64_t> sleepers{0};  // shared_bit of those that sleep
  std::atomic<std::uint32_t> next_worker{0};

  std::mutex add_mutex;  // of the two lists
  std::deque<Worker> workers;
  std::deque<Slot> slots;
  std::optional<Error> refused;

  std::mutex wait_mutex;
  std::condition_variable wait_changed;
  bool woken = false;
};

// False: the system gives none, and `refused` tells.
bool ThreadScheduler::State::start(const std::shared_ptr<State>& self, Worker& worker,
                                   std::string_view whom) {
  auto thread = start_thread(whom, [self, &worker] { self->work(worker); });
  if (!thread.ok()) {
    if (!refused) refused = thread.error();
    return false;
  }
  worker.thread = std::move(*thread);
  return true;
}

Worker* ThreadScheduler::State::start_own_worker(const std::shared_ptr<State>& self,
                                                 std::string_view whom) {
  Worker& worker = workers.emplace_back();
  worker.home = this;
  if (start(self, worker, whom)) return &worker;
  workers.pop_back();
  return nullptr;
}

void ThreadScheduler::State::work(Worker& worker) {
  this_worker = &worker;
  Slot* slot = nullptr;
  bool again = false;
  while ((slot = next(worker, slot, again)) != nullptr) again = slot->task->run_slice(kSliceEvents);
}

// Puts away the task that ran before and finds another; nullptr when the thread must end. A retired
// task may hold the last reference to its node, so it is released last and outside the lock.
Slot* ThreadScheduler::State::next(Worker& worker, Slot* before, bool again) {
  std::shared_ptr<void> released;
  std::unique_lock lock(worker.mutex);
  worker.running = nullptr;
  if (before != nullptr) {
    if (before->retired.load()) {
      released = std::move(before->keep_alive);
    } else if (again) {
      worker.queue.push_back(before);
    }
  }
  if (released != nullptr) {
    lock.unlock();
    released.reset();
    lock.lock();
  }
  Slot* slot = find_work(worker, lock);
  const bool was_asleep = std::exchange(worker.slept, false);
  lock.unlock();
  if (slot != nullptr && was_asleep) set_a_watch();
  return slot;
}

Slot* ThreadScheduler::State::find_work(Worker& worker, std::unique_lock<std::mutex>& lock) {
  while (!worker.quit) {
    Slot* slot = pop(worker);
    if (slot == nullptr && worker.shared_bit != 0) slot = steal(worker);
    if (slot != nullptr) {
      worker.running = slot;
      return slot;
    }
    sleep(worker, lock);
  }
  return nullptr;
}

// Under the thief's lock; two thieves that want each other's both give up.
Slot* ThreadScheduler::State::steal(Worker& thief) {
  for (Worker* victim : shared) {
    if (victim == &thief) continue;
    const std::unique_lock lock(victim->mutex, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    if (Slot* slot = pop(*victim)) return slot;
  }
  return nullptr;
}

void ThreadScheduler::State::sleep(Worker& worker, std::unique_lock<std::mutex>& lock) {
  worker.sleeping = worker.slept = true;
  const std::uint64_t bit = worker.shared_bit;
  const std::uint64_t asleep = sleepers.fetch_or(bit) | bit;
  if (bit == 0 || asleep == all_shared) {
    worker.sound = true;
    worker.wakened.wait(lock);
    worker.sound = false;
  }
  // A worker that was notified without a task is the watch: tasks that were queued elsewhere only
  // just now are not for it.
  if (bit != 0 && worker.queue.empty() && !worker.quit) worker.wakened.wait_for(lock, kRescan);
  sleepers.fetch_and(~bit);
  worker.sleeping = false;
}

// While a worker runs and others sleep, one of the sleepers must rescan. A worker that slept and is
// about to run calls this. A worker that is awake and not yet running serves as well: it finds a
// task and calls this too, or it sleeps and rescans.
void ThreadScheduler::State::set_a_watch() {
  Worker* sleeper = nullptr;
  for (std::uint64_t left = sleepers.load(); left != 0; left &= left - 1) {
    sleeper = shared[static_cast<std::size_t>(std::countr_zero(left))];
    const std::scoped_lock lock(sleeper->mutex);
    if (!sleeper->sound) return;
  }
  if (sleeper == nullptr) return;
  const std::scoped_lock lock(sleeper->mutex);
  sleeper->wakened.notify_one();
}

bool ThreadScheduler::State::hand_to_sleeper(Slot* slot) {
  for (std::uint64_t left = sleepers.load(); left != 0; left &= left - 1) {
    Worker& worker = *shared[static_cast<std::size_t>(std::countr_zero(left))];
    const std::scoped_lock lock(worker.mutex);
    if (!worker.sleeping || !worker.queue.empty()) continue;
    if (!slot->retired.load()) worker.queue.push_back(slot);
    worker.wakened.notify_one();
    return true;
  }
  return false;
}

bool ThreadScheduler::State::running(const Slot* slot) {
  const std::scoped_lock list_lock(add_mutex);
  return std::any_of(workers.begin(), workers.end(), [&](Worker& worker) {
    const std::scoped_lock lock(worker.mutex);
    return worker.running == slot;
  });
}

ThreadScheduler::ThreadScheduler(int threads, const Clock& clock)
    : state_(std::make_shared<State>(clock)) {
  CHECK(threads >= 1 && threads <= 64, "1 to 64 scheduler threads");
  const std::scoped_lock lock(state_->add_mutex);
  state_->all_shared = threads == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << threads) - 1;
  // The list is complete before the first thread looks at it.
  std::vector<Worker*>& shared = state_->shared;
  for (int i = 0; i < threads; ++i) {
    Worker& worker = state_->workers.emplace_back();
    worker.shared_bit = std::uint64_t{1} << i;
    worker.home = state_.get();
    shared.push_back(&worker);
  }
  for (Worker* worker : shared) {
    if (!state_->start(state_, *worker, "the scheduler")) return;
  }
}

ThreadScheduler::~ThreadScheduler() { shut_down(); }

void ThreadScheduler::add(Task& task, bool own_thread, std::shared_ptr<void> keep_alive) {
  const std::scoped_lock lock(state_->add_mutex);
  Slot& slot = state_->slots.emplace_back();
  slot.task = &task;
  slot.keep_alive = std::move(keep_alive);
  task.slot_ = &slot;
  if (!own_thread) return;
  slot.own = state_->start_own_worker(state_, task.name());
  if (slot.own == nullptr) return;
  // The system keeps fifteen characters.
  ::pthread_setname_np(slot.own->thread.native_handle(),
                       std::string(task.name().substr(0, 15)).c_str());
}

std::optional<Error> ThreadScheduler::refused() const {
  const std::scoped_lock lock(state_->add_mutex);
  return state_->refused;
}

void ThreadScheduler::enqueue(Task& task) {
  auto* slot = static_cast<Slot*>(task.slot_);
  if (slot->own != nullptr) {
    push(*slot->own, slot);
    return;
  }
  Worker* here = this_worker;
  if (here != nullptr && (here->home != state_.get() || here->shared_bit == 0)) here = nullptr;
  // A worker keeps the first task that it makes runnable. With more work and a sleeper it hands
  // over.
  if (here != nullptr) {
    const std::scoped_lock lock(here->mutex);
    if (here->queue.empty() || state_->sleepers.load() == 0) {
      if (!slot->retired.load()) here->queue.push_back(slot);
      return;
    }
  }
  if (state_->hand_to_sleeper(slot)) return;
  if (here == nullptr) here = state_->shared[state_->next_worker++ % state_->shared.size()];
  push(*here, slot);
}

std::vector<Task*> ThreadScheduler::retire(const std::vector<Task*>& tasks, Duration patience) {
  for (Task* task : tasks) {
    if (task->slot_ != nullptr) static_cast<Slot*>(task->slot_)->retired.store(true);
  }
  const auto give_up_at = steady_now() + patience;
  std::vector<Task*> busy;
  for (Task* task : tasks) {
    auto* slot = static_cast<Slot*>(task->slot_);
    if (slot == nullptr) continue;
    // Polls, because retiring is rare: a task that runs would otherwise have to tell whoever waits
    // for it, on every slice.
    while (state_->running(slot) && steady_now() < give_up_at) {
      std::this_thread::sleep_for(kRetirePoll);
    }
    if (state_->running(slot)) {
      busy.push_back(task);
    } else {
      slot->keep_alive.reset();
    }
  }
  return busy;
}

void ThreadScheduler::wait(TimePoint until) {
  std::unique_lock lock(state_->wait_mutex);
  const Duration left = until - state_->clock.now();
  state_->wait_changed.wait_for(lock, std::min<Duration>(left, kLongestWait),
                                [&] { return state_->woken; });
  state_->woken = false;
}

void ThreadScheduler::wake() {
  const std::scoped_lock lock(state_->wait_mutex);
  state_->woken = true;
  state_->wait_changed.notify_one();
}

void ThreadScheduler::shut_down() {
  const std::scoped_lock list_lock(state_->add_mutex);
  for (Worker& worker : state_->workers) {
    if (!worker.thread.joinable()) continue;
    bool running = false;
    {
      const std::scoped_lock lock(worker.mutex);
      worker.quit = true;
      running = worker.running != nullptr;
      worker.wakened.notify_one();
    }
    if (running || worker.thread.get_id() == std::this_thread::get_id()) {
      worker.thread.detach();
    } else {
      worker.thread.join();
    }
  }
}

}  // namespace troupe::runtime
