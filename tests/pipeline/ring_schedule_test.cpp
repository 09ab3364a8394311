#include "pipeline/steps/ring_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace troupe::pipeline {
namespace {

// What one bucket meets on its way, played without knowing where homes are: whoever begins sends,
// others add when something comes, and the sum is passed on by those who say so.
struct Journey {
  std::vector<int> added;    // how often each position's part went in
  std::vector<int> reached;  // how often each position got the sum
  std::vector<int> crossed;  // messages over the edge from each position
};

Journey travel(std::uint32_t bucket, std::uint32_t members) {
  Journey journey{std::vector<int>(members), std::vector<int>(members), std::vector<int>(members)};
  std::uint32_t at = 0;
  std::uint32_t beginners = 0;
  for (std::uint32_t position = 0; position < members; ++position) {
    if (!ring_role(bucket, position, members).begins) continue;
    at = position;
    ++beginners;
  }
  EXPECT_EQ(beginners, 1U);
  ++journey.added[at];
  for (std::uint32_t i = 0; i < members && !ring_role(bucket, at, members).completes; ++i) {
    ++journey.crossed[at];
    at = (at + 1) % members;
    ++journey.added[at];
  }
  EXPECT_EQ(at, home_of(bucket, members));
  ++journey.reached[at];
  for (std::uint32_t i = 0; i < members && ring_role(bucket, at, members).passes_sum; ++i) {
    ++journey.crossed[at];
    at = (at + 1) % members;
    ++journey.reached[at];
  }
  return journey;
}

TEST(RingSchedule, EveryPartIsAddedOnceAndEveryMemberGetsTheSumOnce) {
  for (std::uint32_t members = 1; members <= 64; ++members) {
    for (std::uint32_t bucket = 0; bucket < 2 * members + 3; ++bucket) {
      const Journey journey = travel(bucket, members);
      EXPECT_EQ(std::ranges::count(journey.added, 1), members) << bucket << " of " << members;
      EXPECT_EQ(std::ranges::count(journey.reached, 1), members) << bucket << " of " << members;
    }
  }
}

TEST(RingSchedule, NoBucketCrossesMoreEdgesThanItMust) {
  for (std::uint32_t members = 1; members <= 64; ++members) {
    const Journey journey = travel(members / 2, members);
    EXPECT_EQ(std::accumulate(journey.crossed.begin(), journey.crossed.end(), 0),
              2 * (static_cast<int>(members) - 1));
  }
}

TEST(RingSchedule, EdgesCarryTheSameWhenEveryMemberIsHomeOfAsMany) {
  for (std::uint32_t members = 1; members <= 64; ++members) {
    std::vector<int> crossed(members);
    for (std::uint32_t bucket = 0; bucket < 3 * members; ++bucket) {
      const Journey journey = travel(bucket, members);
      for (std::uint32_t i = 0; i < members; ++i) crossed[i] += journey.crossed[i];
    }
    for (const int each : crossed) EXPECT_EQ(each, 3 * 2 * (static_cast<int>(members) - 1));
  }
}

TEST(RingSchedule, MessagesOfAnEdgeAreThoseThatCrossIt) {
  for (const std::uint32_t members : {1U, 2U, 3U, 7U, 64U}) {
    for (const std::uint32_t buckets : {0U, 1U, 5U, 64U, 129U}) {
      for (std::uint32_t position = 0; position < members; ++position) {
        std::int64_t crossed = travel(kHeaderBucket, members).crossed[position];
        for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
          crossed += travel(bucket, members).crossed[position];
        }
        EXPECT_EQ(ring_messages(buckets, position, members), crossed);
      }
    }
  }
}

TEST(RingSchedule, AloneNothingIsSent) {
  EXPECT_EQ(ring_role(5, 0, 1), (RingRole{true, true, false}));
  EXPECT_EQ(ring_messages(10, 0, 1), 0);
}

TEST(RingScheduleDeathTest, PositionOutsideTheRingBreaksAnInvariant) {
  EXPECT_DEATH(ring_role(0, 3, 3), "position");
  EXPECT_DEATH(home_of(0, 0), "members");
}

}  // namespace
}  // namespace troupe::pipeline
