#pragma once

// How much of a long walk over cases a test plays.

#include <cstdint>
#include <cstdlib>

namespace troupe {

// The stride of a loop over seeds or moments: `n` in the suite, so that it plays the same part of
// them each time; 1, so that it plays all of them, where TROUPE_THOROUGH is set, as in
// ./dev test --slow. A loop that looks at its number modulo something takes an `n` that shares no
// factor with it.
inline std::uint64_t stride(std::uint64_t n) {
  return std::getenv("TROUPE_THOROUGH") == nullptr ? n : 1;
}

}  // namespace troupe
