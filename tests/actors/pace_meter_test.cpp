#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "actors/step_teller.h"

namespace troupe::actors {
namespace {

using std::chrono::seconds;

void iterate(PaceMeter& meter, int times, double seconds) {
  for (int i = 0; i < times; ++i) {
    meter.add_step(seconds / 4);
    meter.add_step(3 * seconds / 4);
    meter.end_iteration(3);
  }
}

TEST(PaceMeter, TellsWhatWholeIterationsTook) {
  PaceMeter meter;
  meter.restart();
  iterate(meter, 1, 100.0);  // that a View began in
  iterate(meter, 10, 0.5);
  EXPECT_FALSE(meter.take(7, 12, seconds(100)));
  const auto pace = meter.take(7, 12, seconds(105));
  ASSERT_TRUE(pace);
  EXPECT_EQ(pace->replica, 7U);
  EXPECT_EQ(pace->iteration, 12U);
  EXPECT_EQ(pace->micro_batches, 30U);
  EXPECT_DOUBLE_EQ(pace->seconds, 5.0);
}

TEST(PaceMeter, CountsTooFewIterationsWithTheNext) {
  PaceMeter meter;
  meter.restart();
  iterate(meter, 2, 1.0);
  EXPECT_FALSE(meter.take(0, 12, seconds(1)));
  EXPECT_FALSE(meter.take(0, 12, seconds(9))) << "one whole iteration";
  iterate(meter, 5, 2.0);
  const auto pace = meter.take(0, 12, seconds(10));
  ASSERT_TRUE(pace);
  EXPECT_EQ(pace->micro_batches, 18U);
  EXPECT_DOUBLE_EQ(pace->seconds, 11.0);
  EXPECT_FALSE(meter.take(0, 12, seconds(20))) << "nothing since";
}

TEST(PaceMeter, TellsSoonAtFirstAndThenNowAndThen) {
  PaceMeter meter;
  std::vector<int> told_at;  // milliseconds
  const auto run = [&](int from, int to) {
    meter.restart();
    told_at.clear();
    for (int now = from; now < to; now += 100) {
      iterate(meter, 1, 0.1);
      if (meter.take(0, 12, std::chrono::milliseconds(now))) told_at.push_back(now);
    }
  };
  run(0, 8'000);
  EXPECT_THAT(told_at, testing::ElementsAre(500, 1500, 3500, 5500, 7500));
  run(20'000, 22'000);
  EXPECT_THAT(told_at, testing::ElementsAre(20'500, 21'500)) << "in another View";
}

TEST(PaceMeter, ForgetsWhatWasMeasuredBeforeAnotherView) {
  PaceMeter meter;
  meter.restart();
  iterate(meter, 9, 1.0);
  meter.add_step(50.0);
  meter.restart();
  iterate(meter, 1, 0.0);
  EXPECT_FALSE(meter.take(0, 12, seconds(0)));
  iterate(meter, 8, 0.25);
  const auto pace = meter.take(0, 12, seconds(2));
  ASSERT_TRUE(pace);
  EXPECT_DOUBLE_EQ(pace->seconds, 2.0);
}

TEST(PaceMeter, OfAReplicaWithoutMicroBatchesThereIsNoPace) {
  PaceMeter meter;
  for (int i = 0; i < 20; ++i) meter.end_iteration(0);
  EXPECT_FALSE(meter.take(0, 12, seconds(0)));
  EXPECT_FALSE(meter.take(0, 12, seconds(20)));
}

}  // namespace
}  // namespace troupe::actors
