#include "pipeline/steps/ring_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "pipeline/steps/ring_rows.h"

namespace troupe::pipeline {
namespace {

struct Ring {
  std::uint32_t members = 1;
  std::vector<std::uint32_t> rows{};

  BucketRoutes routes() const { return BucketRoutes(members, rows); }
};

// One ring, and rows of one length, of others, of one member, and that begin behind position 0.
std::vector<Ring> rings() {
  std::vector<Ring> all;
  for (std::uint32_t members = 1; members <= 64; ++members) all.push_back({members});
  for (const std::uint32_t members : {4U, 9U, 12U, 17U, 30U, 64U}) {
    for (std::uint32_t rows = 2; rows <= members; rows += 1 + rows / 3) {
      all.push_back({members, even_rows(members, rows)});
    }
  }
  all.push_back({6, {1, 4}});
  all.push_back({7, {3, 4}});
  all.push_back({8, {1, 2, 7}});
  all.push_back({5, {0, 4}});
  return all;
}

using Edge = std::pair<std::uint32_t, std::uint32_t>;

// What one bucket meets on its way, played without knowing where homes are: whoever has all parts
// that it waits for sends, and the sum is passed on by those who say so.
struct Journey {
  std::vector<std::vector<int>> holds;  // by position: how often each part is in what it sends
  std::vector<int> reached;             // how often each position got the sum
  std::map<Edge, int> crossed;          // messages over each edge
  std::uint32_t homes = 0, home = 0;
  std::uint32_t longest_way = 0;  // messages one after the other
};

Journey travel(std::uint32_t bucket, const Ring& ring) {
  const BucketRoutes routes = ring.routes();
  Journey journey{std::vector(ring.members, std::vector<int>(ring.members)),
                  std::vector<int>(ring.members),
                  {}};
  std::vector<std::uint32_t> came(ring.members), ready;
  std::vector<std::uint32_t> way(ring.members);  // messages before it had what it sent
  for (std::uint32_t i = 0; i < ring.members; ++i) {
    ++journey.holds[i][i];
    if (routes.role(bucket, i).begins()) ready.push_back(i);
  }
  while (!ready.empty()) {
    const std::uint32_t at = ready.back();
    ready.pop_back();
    const BucketRole role = routes.role(bucket, at);
    if (role.completes()) {
      ++journey.homes;
      journey.home = at;
      continue;
    }
    const std::uint32_t to = *role.part_to;
    ++journey.crossed[{at, to}];
    way[to] = std::max(way[to], way[at] + 1);
    for (std::uint32_t i = 0; i < ring.members; ++i) journey.holds[to][i] += journey.holds[at][i];
    if (++came[to] == routes.role(bucket, to).parts) ready.push_back(to);
  }
  std::vector<std::uint32_t> has{journey.home};
  while (!has.empty()) {
    const std::uint32_t at = has.back();
    has.pop_back();
    ++journey.reached[at];
    if (journey.reached[at] > 1) continue;
    journey.longest_way = std::max(journey.longest_way, way[at]);
    for (const std::uint32_t to : routes.role(bucket, at).sum_to) {
      ++journey.crossed[{at, to}];
      way[to] = way[at] + 1;
      has.push_back(to);
    }
  }
  return journey;
}

TEST(RingSchedule, EveryPartIsAddedOnceAndEveryMemberGetsTheSumOnce) {
  for (const Ring& ring : rings()) {
    for (std::uint32_t bucket = 0; bucket < 2 * ring.members + 3; ++bucket) {
      const Journey journey = travel(bucket, ring);
      const std::string where = testing::PrintToString(ring.rows) + " of " +
                                std::to_string(ring.members) + ", bucket " + std::to_string(bucket);
      ASSERT_EQ(journey.homes, 1U) << where;
      ASSERT_EQ(journey.home, ring.routes().home_of(bucket)) << where;
      ASSERT_EQ(std::ranges::count(journey.holds[journey.home], 1), ring.members) << where;
      ASSERT_EQ(std::ranges::count(journey.reached, 1), ring.members) << where;
      ASSERT_LE(journey.longest_way, ring.routes().longest_way()) << where;
    }
  }
}

TEST(RingSchedule, NoBucketCrossesMoreEdgesThanItMust) {
  for (const Ring& ring : rings()) {
    int messages = 0;
    for (const auto& [edge, crossed] : travel(ring.members / 2, ring).crossed) messages += crossed;
    EXPECT_EQ(messages, 2 * (static_cast<int>(ring.members) - 1));
  }
}

TEST(RingSchedule, MembersSendTheSameWhenEveryOneIsHomeOfAsMany) {
  std::vector<Ring> even;
  for (std::uint32_t members = 1; members <= 64; ++members) even.push_back({members});
  for (const auto& [length, rows] : {std::pair{2U, 2U}, {4U, 3U}, {4U, 6U}, {5U, 8U}, {1U, 6U}}) {
    even.push_back({length * rows, even_rows(length * rows, rows)});
  }
  for (const Ring& ring : even) {
    std::set<std::uint32_t> homes;
    for (std::uint32_t i = 0; i < ring.members; ++i) homes.insert(ring.routes().home_of(i));
    EXPECT_EQ(homes.size(), ring.members);
    std::vector<int> sent(ring.members);
    for (std::uint32_t bucket = 0; bucket < 3 * ring.members; ++bucket) {
      for (const auto& [edge, crossed] : travel(bucket, ring).crossed) sent[edge.first] += crossed;
    }
    for (const int each : sent) EXPECT_EQ(each, 3 * 2 * (static_cast<int>(ring.members) - 1));
  }
}

TEST(RingSchedule, RowsShortenTheWay) {
  EXPECT_EQ(Ring{1}.routes().longest_way(), 0U);
  EXPECT_EQ(Ring{64}.routes().longest_way(), 126U);
  EXPECT_EQ((Ring{64, even_rows(64, 8)}).routes().longest_way(), 28U);
  EXPECT_EQ((Ring{6, {1, 4}}).routes().longest_way(), 6U);
}

TEST(RingSchedule, APositionSendsToThoseBehindItAlone) {
  std::vector<Ring> all = rings();
  all.insert(all.end(), {{12, {0, 3, 7, 8}}, {11, {2, 5, 9}}});
  for (const Ring& ring : all) {
    const BucketRoutes routes = ring.routes();
    std::vector<std::set<std::uint32_t>> sent(ring.members);
    for (std::uint32_t bucket = 0; bucket < 2 * ring.members * ring.members; ++bucket) {
      for (std::uint32_t position = 0; position < ring.members; ++position) {
        const BucketRole role = routes.role(bucket, position);
        if (role.part_to) sent[position].insert(*role.part_to);
        sent[position].insert(role.sum_to.begin(), role.sum_to.end());
      }
    }
    for (std::uint32_t position = 0; position < ring.members; ++position) {
      EXPECT_EQ(routes.next_of(position),
                std::vector<std::uint32_t>(sent[position].begin(), sent[position].end()))
          << position << " of " << ring.members << testing::PrintToString(ring.rows);
    }
  }
  EXPECT_EQ(Ring{1}.routes().next_of(0).size(), 0U);
  EXPECT_EQ(Ring{512}.routes().next_of(511), std::vector<std::uint32_t>{0});
}

TEST(RingSchedule, MessagesOfAnEdgeAreThoseThatCrossIt) {
  const std::vector<Ring> some{{1}, {2}, {3}, {7}, {64}, {9, {0, 3, 6}}, {10, {2, 5}}};
  for (const Ring& ring : some) {
    for (const std::uint32_t buckets : {0U, 1U, 5U, 64U, 129U}) {
      std::map<Edge, int> crossed = travel(kHeaderBucket, ring).crossed;
      for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
        for (const auto& [edge, messages] : travel(bucket, ring).crossed) crossed[edge] += messages;
      }
      for (const auto& [edge, messages] : crossed) {
        EXPECT_EQ(ring.routes().messages(buckets, edge.first, edge.second), messages);
      }
    }
  }
  EXPECT_EQ((Ring{9, {0, 3, 6}}).routes().messages(9, 0, 4), 0);  // they are no neighbours
}

TEST(RingSchedule, AloneNothingIsSent) {
  EXPECT_EQ(Ring{1}.routes().role(5, 0), (BucketRole{0, std::nullopt, {}}));
}

TEST(RingSchedule, RowsAscendWithinTheRing) {
  EXPECT_TRUE(are_rows({}, 1));
  EXPECT_TRUE(are_rows({0, 1}, 2));
  EXPECT_TRUE(are_rows({2, 5}, 6));
  EXPECT_FALSE(are_rows({0}, 2));
  EXPECT_FALSE(are_rows({0, 0}, 2));
  EXPECT_FALSE(are_rows({1, 0}, 2));
  EXPECT_FALSE(are_rows({0, 2}, 2));
}

TEST(RingScheduleDeathTest, PositionOutsideTheRingBreaksAnInvariant) {
  EXPECT_DEATH(BucketRoutes(3).role(0, 3), "position");
  EXPECT_DEATH(BucketRoutes(0), "members");
  EXPECT_DEATH(BucketRoutes(3, {1}), "rows");
}

}  // namespace
}  // namespace troupe::pipeline
