#include <gtest/gtest.h>

#include "actors/step_teller.h"

namespace troupe::actors {
namespace {

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
  const auto pace = meter.take(7, 12);
  ASSERT_TRUE(pace);
  EXPECT_EQ(pace->replica, 7U);
  EXPECT_EQ(pace->iteration, 12U);
  EXPECT_EQ(pace->micro_batches, 30U);
  EXPECT_DOUBLE_EQ(pace->seconds, 5.0);
}

TEST(PaceMeter, CountsTooFewIterationsWithTheNext) {
  PaceMeter meter;
  meter.restart();
  iterate(meter, 5, 1.0);
  EXPECT_FALSE(meter.take(0, 12));
  iterate(meter, 5, 2.0);
  const auto pace = meter.take(0, 12);
  ASSERT_TRUE(pace);
  EXPECT_EQ(pace->micro_batches, 27U);
  EXPECT_DOUBLE_EQ(pace->seconds, 14.0);
  EXPECT_FALSE(meter.take(0, 12)) << "nothing since";
}

TEST(PaceMeter, ForgetsWhatWasMeasuredBeforeAnotherView) {
  PaceMeter meter;
  meter.restart();
  iterate(meter, 9, 1.0);
  meter.add_step(50.0);
  meter.restart();
  iterate(meter, 1, 0.0);
  EXPECT_FALSE(meter.take(0, 12));
  iterate(meter, 8, 0.25);
  const auto pace = meter.take(0, 12);
  ASSERT_TRUE(pace);
  EXPECT_DOUBLE_EQ(pace->seconds, 2.0);
}

TEST(PaceMeter, OfAReplicaWithoutMicroBatchesThereIsNoPace) {
  PaceMeter meter;
  for (int i = 0; i < 20; ++i) meter.end_iteration(0);
  EXPECT_FALSE(meter.take(0, 12));
}

}  // namespace
}  // namespace troupe::actors
