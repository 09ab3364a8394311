#pragma once

// Whether a number that is to fall still falls, epoch by epoch. A pure function of these numbers.

#include <cstdint>

namespace troupe::model {

struct BestSoFar {
  double best = 0.0;         // the lowest; meaningful when epochs > 0
  std::uint32_t epochs = 0;  // that were noted
  std::uint32_t waited = 0;  // in a row without an improvement
  bool operator==(const BestSoFar&) const = default;

  // Notes an epoch's number. An improvement is the first one, or more than min_delta below the
  // best; returns whether it is one.
  bool note(double metric, double min_delta) {
    const bool improves = epochs == 0 || metric < best - min_delta;
    if (improves) best = metric;
    waited = improves ? 0 : waited + 1;
    ++epochs;
    return improves;
  }
};

}  // namespace troupe::model
