#pragma once

// Random numbers of a study. A number is a function of the method's seed, the trial it is drawn for
// and its use, so that a study draws the same ones whenever it goes on.

#include <cstdint>

#include "runtime/base/random.h"

namespace troupe::study {

enum class DrawUse : std::uint32_t {
  kPoint = 1,   // a point anywhere in the space
  kStratum,     // the order of strata; the trial is 0
  kCandidates,  // where a search for the best proposal begins
  kParents,
  kChild,
};

// The streams of trainings are lower (model/streams.h).
inline constexpr std::uint32_t kStudyStream = 0x800000;

// In (0, 1).
inline double draw(std::uint64_t seed, std::uint32_t trial, DrawUse use, std::uint32_t index) {
  const runtime::RandomPosition position{.seed = seed,
                                         .micro_batch = trial,
                                         .iteration = static_cast<std::uint32_t>(use),
                                         .stream = kStudyStream};
  return runtime::random_uniform(position, index);
}

}  // namespace troupe::study
