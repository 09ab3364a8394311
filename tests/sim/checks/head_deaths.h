#pragma once

// Deaths of heads in runs in which nothing else is left to chance.

#include <chrono>
#include <cstdint>

#include "tests/sim/training/training_play.h"

namespace troupe::sim {

constexpr std::uint64_t kPlainSeed = 7;
// The next head is there before members have given the last one up, and after that.
constexpr Duration kSoon = std::chrono::milliseconds(30), kLate = std::chrono::milliseconds(2500);

inline Death head_lost(std::uint64_t after, Duration next = kSoon) {
  return {after, 0, false, 0, 0, Duration{0}, next};
}

}  // namespace troupe::sim
