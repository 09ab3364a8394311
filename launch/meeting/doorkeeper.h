#pragma once

// The head of a run tells each process that asks for something before its node runs to ask again.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/transport/wire.h"

namespace troupe::launch {

// A head that opens its data answers nobody for seconds or minutes, and a process that wants to
// join, or to change a pool, would think that there is no head. This answers meanwhile, on a thread
// of its own.
class Doorkeeper {
 public:
  // Within that time the node begins to answer, in most runs, and it answers better.
  static constexpr runtime::Duration kAfter = std::chrono::seconds(2);

  // Drives the wire from `after` on until it ends; both outlive it. `why` is told: "the head ...".
  Doorkeeper(runtime::Wire& wire, const runtime::Clock& clock, std::string why,
             runtime::Duration after = kAfter);
  // Tells the same to all that are still connected, and closes their connections.
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

 private:
  class Visitors;
  void answer();
  bool ends_within(runtime::Duration time);

  runtime::Wire& wire_;
  const runtime::Clock& clock_;
  const std::string why_;
  const runtime::Duration after_;
  std::mutex mutex_;  // of ends_
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace troupe::launch
