#pragma once

// How fast a replica gets through micro-batches: what it spends on whole iterations between changes
// of the View. One thread.

#include <cstdint>
#include <optional>

#include "actors/messages.h"

namespace troupe::actors {

class PaceMeter {
 public:
  // In another View: the iteration under way is not counted.
  void restart();

  // A step has kept the replica busy for so long, computing or waiting for events.
  void add_step(double seconds) { seconds_ += seconds; }
  // The iteration of these steps is over; so many micro-batches of it were the replica's.
  void end_iteration(std::uint64_t micro_batches);

  // Since the pace was last taken; none when that were too few iterations to tell, which the next
  // ones are counted with.
  std::optional<Pace> take(std::uint32_t replica, std::uint64_t iteration);

 private:
  bool is_whole_ = false;  // the iteration under way began since restart()
  std::uint64_t iterations_ = 0, micro_batches_ = 0;
  double seconds_ = 0.0, measured_seconds_ = 0.0;
};

}  // namespace troupe::actors
