#pragma once

#include <cstdint>

namespace troupe::model::cpu {

// Calls use(first, count) for the parts of [0, all), as equal as possible and of `most` at most.
template <class Use>
void in_parts(std::int64_t all, std::int64_t most, const Use& use) {
  const std::int64_t parts = (all + most - 1) / most;
  std::int64_t first = 0;
  for (std::int64_t i = 1; i <= parts; ++i) {
    const std::int64_t next = all * i / parts;
    use(first, next - first);
    first = next;
  }
}

}  // namespace troupe::model::cpu
