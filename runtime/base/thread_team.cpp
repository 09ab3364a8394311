#include "runtime/base/thread_team.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/start_thread.h"

namespace troupe::runtime {

ThreadTeam::ThreadTeam(int threads, const std::function<void()>& on_thread_start) {
  CHECK(threads >= 1);
  others_.reserve(static_cast<std::size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) {
    auto thread = start_thread("computing", [this, i, on_thread_start] {
      if (on_thread_start) on_thread_start();
      work(i);
    });
    // The system may give fewer threads. Any number of them computes the same.
    if (!thread.ok()) break;
    others_.push_back(std::move(*thread));
  }
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : others_) thread.join();
}

// The caller takes index 0 before it competes for others, as thread 0 must have it: see the header.
// Other threads begin with index 1.
void ThreadTeam::run(std::int64_t count, const std::function<void(std::int64_t, int)>& body) {
  {
    const std::lock_guard lock(mutex_);
    CHECK(busy_ == 0, "one loop at a time");
    body_ = &body;
    count_ = count;
    next_ = 1;
    busy_ = static_cast<int>(others_.size());
    ++round_;
  }
  start_.notify_all();
  if (count > 0) body(0, 0);
  take_indices(0);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadTeam::work(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return ending_ || round_ != seen; });
      if (ending_) return;
      seen = round_;
    }
    take_indices(thread);
    {
      const std::lock_guard lock(mutex_);
      --busy_;
    }
    finished_.notify_one();
  }
}

void ThreadTeam::take_indices(int thread) {
  for (;;) {
    std::int64_t index;
    {
      const std::lock_guard lock(mutex_);
      if (next_ >= count_) return;
      index = next_++;
    }
    (*body_)(index, thread);
  }
}

}  // namespace troupe::runtime
