#include "pipeline/data/read_ahead.h"

#include <algorithm>
#include <utility>

namespace troupe::pipeline {

std::int64_t ReadAhead::most(std::int64_t bytes) {
  return std::clamp(kMostBytes / std::max<std::int64_t>(1, bytes), kLeast, kMost);
}

bool ReadAhead::note_used_up() {
  if (!std::exchange(was_full_, false) || micro_batches_ >= most_) return false;
  micro_batches_ = std::min(2 * micro_batches_, most_);
  return true;
}

}  // namespace troupe::pipeline
