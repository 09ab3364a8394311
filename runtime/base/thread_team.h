#pragma once

// A fixed set of threads that share out the indices of a loop.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::runtime {

class ThreadTeam {
 public:
  // `threads` >= 1 in all: the caller is one of them. `on_thread_start` runs first in each of the
  // other threads (and not in the caller), to set what is per thread. If the system refuses a
  // thread, the team has the threads made before it. threads() tells their number; a caller that
  // was asked for more reports that.
  explicit ThreadTeam(int threads, const std::function<void()>& on_thread_start = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return static_cast<int>(others_.size()) + 1; }

  // Calls body(index, thread) for every index in [0, count), each once, in any order, on any thread
  // (0 <= thread < threads(); 0 is the caller, which takes index 0). Returns when all are done.
  // `body` must not throw and must not call run() of the same team. One caller at a time.
  void run(std::int64_t count, const std::function<void(std::int64_t, int)>& body);

 private:
  void work(int thread);
  void take_indices(int thread);

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable finished_;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool ending_ = false;
  const std::function<void(std::int64_t, int)>* body_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t next_ = 0;
  std::vector<std::thread> others_;
};

}  // namespace troupe::runtime
