#include "runtime/node/patience.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kDeadAfter = seconds(2);
constexpr TimePoint kNow = minutes(100);

TEST(Patience, IsTheFloorWherePeersAreRegularAndHostsHaveTime) {
  Patience patience(kDeadAfter);
  EXPECT_EQ(patience.with_silence(kNow, 0.0), kDeadAfter);
  patience.add_gap(milliseconds(500), kNow);
  patience.add_load(2.0, kNow);
  EXPECT_EQ(patience.with_silence(kNow, 1.5), kDeadAfter) << "training keeps every processor busy";
}

TEST(Patience, GrowsWithTheLongestGapAndForgetsIt) {
  Patience patience(kDeadAfter);
  patience.add_gap(milliseconds(1500), kNow);
  patience.add_gap(milliseconds(100), kNow + milliseconds(1));
  EXPECT_GT(patience.with_silence(kNow + milliseconds(1), 0.0), milliseconds(4490));
  EXPECT_LE(patience.with_silence(kNow + milliseconds(1), 0.0), milliseconds(4500));
  EXPECT_EQ(patience.with_silence(kNow + minutes(1), 0.0), milliseconds(2250));
  EXPECT_EQ(patience.with_silence(kNow + minutes(5), 0.0), kDeadAfter);
}

TEST(Patience, GrowsWithTheLoadOfEitherHost) {
  Patience patience(kDeadAfter);
  patience.add_load(6.0, kNow);
  EXPECT_EQ(patience.with_silence(kNow, 0.0), seconds(10));
  EXPECT_EQ(patience.with_silence(kNow, 7.0), seconds(12));
}

TEST(Patience, WithAClosedConnectionDoesNotGrowWithGaps) {
  Patience patience(kDeadAfter);
  patience.add_gap(seconds(5), kNow);
  EXPECT_EQ(patience.with_absence(kNow, 0.0), kDeadAfter);
  patience.add_load(6.0, kNow);
  EXPECT_EQ(patience.with_absence(kNow, 0.0), seconds(10));
}

TEST(Patience, IsBounded) {
  Patience patience(kDeadAfter);
  patience.add_load(1e9, kNow);
  patience.add_gap(minutes(10), kNow);
  EXPECT_EQ(patience.with_silence(kNow, 1e9), patience.most());
  EXPECT_EQ(patience.most(), seconds(20));
}

}  // namespace
}  // namespace troupe::runtime
