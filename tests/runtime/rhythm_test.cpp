#include "runtime/node/rhythm.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;

TEST(Rhythm, SilenceCountsFromWhenASignOfLifeWasDueLessOneHeartbeat) {
  Rhythm rhythm(500ms);
  rhythm.begin(10s);
  EXPECT_EQ(rhythm.silent_from(), 10s);
  EXPECT_EQ(rhythm.next(), 10s);
  rhythm.change(4s, 10s);
  EXPECT_EQ(rhythm.silent_from(), 13500ms);
  rhythm.speak(10s);
  EXPECT_EQ(rhythm.next(), 14s);
  rhythm.hear(12s);
  EXPECT_EQ(rhythm.silent_from(), 15500ms);
  EXPECT_EQ(rhythm.last_heard(), 12s);
}

TEST(Rhythm, WhereItGetsShorterBothAreToSpeakSooner) {
  Rhythm rhythm(500ms);
  rhythm.begin(10s);
  rhythm.change(4s, 10s);
  rhythm.speak(10s);
  rhythm.hear(10s);
  rhythm.change(3s, 10500ms);
  EXPECT_EQ(rhythm.next(), 13s);
  EXPECT_EQ(rhythm.silent_from(), 13s);
  rhythm.change(500ms, 11s);
  EXPECT_EQ(rhythm.next(), 11s);
  EXPECT_EQ(rhythm.silent_from(), 11s) << "and not from when it was last heard";
  EXPECT_FALSE(rhythm.is_longer());
}

TEST(Rhythm, OneThatGetsShorterWasLongerUntilTheTwoAreConnectedAnew) {
  Rhythm rhythm(500ms);
  rhythm.begin(10s);
  EXPECT_FALSE(rhythm.was_ever_longer());
  rhythm.change(4s, 10s);
  rhythm.change(500ms, 11s);
  EXPECT_TRUE(rhythm.was_ever_longer());
  rhythm.begin(12s);
  EXPECT_FALSE(rhythm.was_ever_longer());
}

TEST(Rhythm, FirstNodesGrowsWithItsPeers) {
  for (const std::size_t few : {0U, 1U, 31U, 32U}) EXPECT_EQ(rhythm_among(few, 500ms), 500ms);
  EXPECT_EQ(rhythm_among(33, 500ms), 1s);
  EXPECT_EQ(rhythm_among(1024, 500ms), 16s);
}

TEST(Rhythm, SleepOfThisNodePutsOffWhatIsOverdueAlone) {
  Rhythm rhythm(500ms);
  rhythm.begin(10s);
  rhythm.excuse(3s, 14s);
  EXPECT_EQ(rhythm.silent_from(), 13s);
  rhythm.change(10s, 14s);
  rhythm.excuse(3s, 15s);
  EXPECT_EQ(rhythm.silent_from(), 22500ms);
}

}  // namespace
}  // namespace troupe::runtime
