#include "launch/machine/ring_pace.h"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::launch {
namespace {

TEST(RingPace, IsThatOfAConnectionWithin) {
  const auto pace = measure_ring_pace();
  ASSERT_TRUE(pace.ok()) << pace.error().message;
  EXPECT_TRUE(std::isfinite(*pace));
  EXPECT_GT(*pace, 0.0);
}

}  // namespace
}  // namespace troupe::launch
