#pragma once

// Who asks to join before the head's node runs is told to ask again.

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/transport/wire.h"

namespace troupe::launch {

// A head that opens its data, for seconds or minutes, answers nobody, and a process that wants to
// join takes it for one that is not there. This answers meanwhile, on a thread of its own.
class Doorkeeper {
 public:
  // Until then nobody is kept waiting for long, and the node answers better.
  static constexpr runtime::Duration kAfter = std::chrono::seconds(2);

  // Drives the wire from `after` on until it ends; both outlive it. `why` is told: "the head ...".
  Doorkeeper(runtime::Wire& wire, const runtime::Clock& clock, std::string why,
             runtime::Duration after = kAfter);
  // Whoever still has a connection is told too, and the wire has none any more.
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
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace troupe::launch
