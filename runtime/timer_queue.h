#pragma once

// The timers of all actors of a node, by due time. Any thread.

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/lane.h"

namespace troupe::runtime {

class TimerQueue {
 public:
  static constexpr TimePoint kNever = TimePoint::max();

  struct Timer {
    TimerId id;
    ActorId actor;
    TimePoint due;
  };

  // `earliest` tells whether no other timer is due before it.
  struct Added {
    Timer timer;
    bool earliest;
  };
  Added add(ActorId actor, TimePoint due);
  // A timer that is not there any more is ignored.
  void remove(TimerId id, TimePoint due);

  // Takes out what is due by `now`, in order of (due, id).
  std::vector<Timer> take_due(TimePoint now);
  TimePoint next_due() const;  // kNever when there is none

 private:
  using Key = std::pair<TimePoint, std::uint64_t>;

  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::map<Key, ActorId> timers_;
};

}  // namespace troupe::runtime
