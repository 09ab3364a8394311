#pragma once

// Vectors as on another host.

#include <cstdint>

#include <hwy/highway.h>

#include "model/backend/cpu/plane_vectors.h"

namespace troupe::model {

// As long as it lives pairs of bfloat16 are multiplied at once where the host can do so, or in
// turn.
class PairsAtOnceIs {
 public:
  explicit PairsAtOnceIs(bool at_once) { cpu::pairs_at_once_for_tests = at_once; }
  ~PairsAtOnceIs() { cpu::pairs_at_once_for_tests.reset(); }
  PairsAtOnceIs(const PairsAtOnceIs&) = delete;
  PairsAtOnceIs& operator=(const PairsAtOnceIs&) = delete;
};

// As long as it lives Highway dispatches as on a host that has no more than these instructions.
class OnlyTargets {
 public:
  explicit OnlyTargets(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~OnlyTargets() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  OnlyTargets(const OnlyTargets&) = delete;
  OnlyTargets& operator=(const OnlyTargets&) = delete;
};

}  // namespace troupe::model
