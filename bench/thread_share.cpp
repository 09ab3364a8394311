#include "bench/thread_share.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>

#include "bench/measure.h"

namespace troupe::bench {

ThreadShare::ThreadShare(std::vector<std::string> names)
    : names_(std::move(names)), before_(core_seconds()), thread_([this] { watch(); }) {}

ThreadShare::~ThreadShare() { end(); }

double ThreadShare::end() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  return share_;
}

void ThreadShare::look() {
  double seconds = 0.0;
  std::vector<bool> found(names_.size());
  std::error_code ignored;
  // A thread may end between any two of these.
  for (std::filesystem::directory_iterator entry("/proc/self/task", ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    std::string name;
    if (!std::getline(std::ifstream(entry->path() / "comm"), name)) continue;
    const auto kind = std::find_if(names_.begin(), names_.end(),
                                   [&](const std::string& one) { return name.starts_with(one); });
    if (kind == names_.end()) continue;
    std::uint64_t nanoseconds = 0;
    if (!(std::ifstream(entry->path() / "schedstat") >> nanoseconds)) continue;
    found[static_cast<std::size_t>(kind - names_.begin())] = true;
    seconds += static_cast<double>(nanoseconds) * 1e-9;
  }
  if (std::find(found.begin(), found.end(), false) != found.end()) return;
  share_ = seconds / (core_seconds() - before_);
}

void ThreadShare::watch() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ends_; })) look();
}

}  // namespace troupe::bench
