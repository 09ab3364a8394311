#include "telemetry/trace/clock_offset.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace troupe::telemetry {
namespace {

using runtime::TimePoint;
using namespace std::chrono_literals;

TEST(ClockOffset, IsNotKnownWithoutAnEcho) { EXPECT_FALSE(ClockOffset().best().has_value()); }

TEST(ClockOffset, IsWhatAnEvenWayThereAndBackTells) {
  ClockOffset clock;
  clock.add(1000ms, 7205ms, 1010ms);
  ASSERT_TRUE(clock.best().has_value());
  EXPECT_EQ(clock.best()->offset, 6200ms);
  EXPECT_EQ(clock.best()->error, 5ms);
}

// The true offset is -50 ms; whatever share of the way is the way back, it lies within the error.
TEST(ClockOffset, IsOffByNoMoreThanItsError) {
  for (int there = 0; there <= 8; ++there) {
    ClockOffset clock;
    const TimePoint asked = 300ms;
    clock.add(asked, asked + there * 1ms - 50ms, asked + 8ms);
    const auto best = *clock.best();
    EXPECT_LE(best.offset - best.error, -50ms);
    EXPECT_GE(best.offset + best.error, -50ms);
  }
}

TEST(ClockOffset, ShortestWayOfTheLastFewWins) {
  ClockOffset clock(3);
  clock.add(0ms, 101ms, 2ms);
  clock.add(10ms, 150ms, 40ms);
  EXPECT_EQ(clock.best()->error, 1ms);
  clock.add(50ms, 170ms, 60ms);
  EXPECT_EQ(clock.best()->error, 1ms);
  clock.add(70ms, 180ms, 90ms);
  EXPECT_EQ(clock.best()->error, 5ms) << "the first is forgotten";
  EXPECT_EQ(clock.best()->offset, 115ms);
}

TEST(ClockOffset, ForgetsWhatWasHeardLongBefore) {
  ClockOffset clock;
  clock.add(0s, 101ms, 2ms);
  clock.add(20s, 20150ms, 20001ms);
  EXPECT_EQ(clock.best()->error, 500us);
  clock.add(20s, 20150ms, 20003ms);
  clock.add(45s, 45150ms, 45100ms);
  EXPECT_EQ(clock.best()->error, 50ms) << "the clocks may have drifted apart";
}

TEST(ClockOffset, LeavesOutWhatCannotBe) {
  ClockOffset clock;
  clock.add(10ms, 5ms, 9ms);
  clock.add(10ms, TimePoint::max(), 20ms);
  clock.add(10ms, TimePoint::min(), 20ms);
  clock.add(TimePoint::min(), 5ms, TimePoint::max());
  EXPECT_FALSE(clock.best().has_value());
}

}  // namespace
}  // namespace troupe::telemetry
