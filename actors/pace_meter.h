#pragma once

// Measures how fast a replica gets through its micro-batches, over whole iterations between changes
// of the View. One thread.

#include <cstdint>
#include <optional>

#include "actors/messages.h"

namespace troupe::actors {

class PaceMeter {
 public:
  // Another View begins: the iteration under way is not counted.
  void restart();

  // A step kept the replica busy for so long, computing or waiting for events.
  void add_step(double seconds) { seconds_ += seconds; }
  // The iteration of these steps is over. So many of its micro-batches were the replica's.
  void end_iteration(std::uint64_t micro_batches);

  // The pace since it was last taken. Nothing when those were too few iterations to tell; these are
  // then counted with the next ones.
  std::optional<Pace> take(std::uint32_t replica, std::uint64_t iteration);

 private:
  bool is_whole_ = false;  // the iteration under way began after restart()
  std::uint64_t iterations_ = 0, micro_batches_ = 0;
  double seconds_ = 0.0, measured_seconds_ = 0.0;
};

}  // namespace troupe::actors
