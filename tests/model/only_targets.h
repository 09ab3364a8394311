#pragma once

// Vectors as on another host.

#include <cstdint>

#include <hwy/highway.h>

namespace troupe::model {

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
