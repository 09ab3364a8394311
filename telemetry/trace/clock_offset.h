#pragma once

// How far another node's clock is off this one's. The node answers questions with the time of its
// clock. The one of the last few answers with the shortest way there and back tells it best, if the
// clocks have not drifted apart since.

#include <cstddef>
#include <deque>
#include <optional>

#include "runtime/base/clock.h"

namespace troupe::telemetry {

// One thread at a time.
class ClockOffset {
 public:
  // Chooses from the last `keep` answers, and of these from those that were heard within kLongest
  // of the newest; at least 1, CHECKed.
  explicit ClockOffset(std::size_t keep = 16);
  static constexpr runtime::Duration kLongest = std::chrono::seconds(20);

  // Asked and heard are times of this clock, answered is one of the other. An answer that was heard
  // before it was asked, or is decades from now, is left out.
  void add(runtime::TimePoint asked, runtime::TimePoint answered, runtime::TimePoint heard);

  struct Estimate {
    runtime::Duration offset{0};  // the other's clock less this one's
    // Half the time of the way there and back. The offset is wrong by at most that, and by what the
    // clocks have drifted apart since.
    runtime::Duration error{0};
  };
  std::optional<Estimate> best() const;

 private:
  struct Echo : Estimate {
    runtime::TimePoint heard{0};
  };

  std::size_t keep_;
  std::deque<Echo> echoes_;
};

}  // namespace troupe::telemetry
