#pragma once

// How far another node's clock is from this one's, from questions that it answers with the time it
// has: of the last few the one with the shortest way there and back tells it best.

#include <cstddef>
#include <deque>
#include <optional>

#include "runtime/base/clock.h"

namespace troupe::telemetry {

// One thread at a time.
class ClockOffset {
 public:
  // `keep`: echoes it chooses from, the last ones; at least 1, CHECKed.
  explicit ClockOffset(std::size_t keep = 16);

  // Asked and heard on this clock, answered on the other one. What was heard before it was asked,
  // or is decades from now, is left out: the other node may say anything.
  void add(runtime::TimePoint asked, runtime::TimePoint answered, runtime::TimePoint heard);

  struct Estimate {
    runtime::Duration offset{0};  // the other's clock less this one's
    // Half the way there and back: the offset is off by at most that, and by what the clocks have
    // drifted apart since.
    runtime::Duration error{0};
  };
  std::optional<Estimate> best() const;

 private:
  std::size_t keep_;
  std::deque<Estimate> echoes_;
};

}  // namespace troupe::telemetry
