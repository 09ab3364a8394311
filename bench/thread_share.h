#pragma once

// How much of this process's processor time goes to threads of certain names.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::bench {

// Looks ten times a second, from its construction to end(). The threads should live as long: one
// that has ended is not seen any more, and of one that was there before, all is counted.
class ThreadShare {
 public:
  // For threads whose names begin with one of these.
  explicit ThreadShare(std::vector<std::string> names);
  ~ThreadShare();
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

  // Up to the last look at which all kinds of names were there; 0 when there was none.
  double end();

 private:
  void look();
  void watch();

  const std::vector<std::string> names_;
  const double before_;  // core_seconds() when it began
  double share_ = 0.0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace troupe::bench
