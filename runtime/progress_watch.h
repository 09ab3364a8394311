#pragma once

// Tells a node that works from one that is stuck: pure, the node looks at itself and asks.

#include <cstdint>

#include "runtime/base/clock.h"

namespace troupe::runtime {

// A node's view of itself at one moment.
struct Activity {
  std::int64_t progress = 0;  // data messages handled, actors started and ended, posts; ever
  bool quiet = false;         // no handler runs and no mailbox holds anything
  bool timers_pending = false;
};

class ProgressWatch {
 public:
  enum class Verdict : std::uint8_t {
    kMoving,    // progress within stuck_after, or not yet sure of anything else
    kSlow,      // never seen quiet for stuck_after, and no progress; told once per stuck_after
    kStuck,     // for stuck_after nothing but timers has moved; told once per stuck_after
    kDeadlock,  // nothing can ever move again
  };

  ProgressWatch(Duration stuck_after, TimePoint now)
      : stuck_after_(stuck_after), moved_(now), busy_since_(now) {}

  Verdict look(TimePoint now, const Activity& activity) {
    if (activity.progress != progress_) {
      progress_ = activity.progress;
      moved_ = busy_since_ = now;
    }
    if (activity.quiet) {
      busy_since_ = now;
      if (!activity.timers_pending) return Verdict::kDeadlock;
      if (now - moved_ < stuck_after_) return Verdict::kMoving;
      moved_ = now;
      return Verdict::kStuck;
    }
    // A handler may only just have been called by a timer: that is not yet slow.
    if (now - busy_since_ < stuck_after_) return Verdict::kMoving;
    busy_since_ = now;
    return Verdict::kSlow;
  }

  // When the verdict on a node that stays quiet would change.
  TimePoint next_look() const { return moved_ + stuck_after_; }

 private:
  Duration stuck_after_;
  TimePoint moved_;       // or told kStuck
  TimePoint busy_since_;  // last seen quiet, or moving, or told kSlow
  std::int64_t progress_ = 0;
};

}  // namespace troupe::runtime
