#include "pipeline/steps/ring_rows.h"

#include <gmock/gmock.h>

#include <numeric>
#include <utility>
#include <vector>

#include "pipeline/steps/ring_schedule.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Order = std::vector<std::uint32_t>;

Order ascending(std::uint32_t members) {
  Order ring(members);
  std::iota(ring.begin(), ring.end(), 0U);
  return ring;
}

constexpr double kStep = 8.0 * 873'000;

// Hosts of one member each, of whose lines nothing is said.
HostBandwidths unnamed(std::size_t hosts) {
  return HostBandwidths(hosts, std::vector<std::uint64_t>(hosts, kUnnamedBandwidth));
}

TEST(RingRows, FewMembersAreOneRing) {
  for (const double bytes : {100.0, kStep}) {
    for (std::uint32_t members = 1; members < 16; ++members) {
      EXPECT_THAT(ring_rows(ascending(members), {.step_bytes = bytes}), IsEmpty()) << members;
    }
  }
}

TEST(RingRows, ManyAreRowsOfAboutTheSquareRoot) {
  EXPECT_THAT(ring_rows(ascending(16), {.step_bytes = 100}), ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(ring_rows(ascending(17), {.step_bytes = 100}), ElementsAre(0, 4, 8, 12));
  Order rows = ring_rows(ascending(1024), {.step_bytes = 100});
  EXPECT_EQ(BucketRoutes(1024, rows).longest_way(), 124U);
  // Longer rows, whose edges carry smaller parts.
  rows = ring_rows(ascending(1024), {.step_bytes = kStep});
  EXPECT_EQ(BucketRoutes(1024, rows).longest_way(), 156U);
  // Bytes decide, and rows save none.
  EXPECT_THAT(ring_rows(ascending(16), {.step_bytes = 1e9}), IsEmpty());
  EXPECT_THAT(ring_rows(ascending(16), {.step_bytes = 100, .least = 5}), IsEmpty());
}

TEST(RingRows, AreNotWorthLessThanAHundredthOfTheTime) {
  const RingCosts costs{.step_bytes = 1.872e7};
  const double rows = ring_seconds(ascending(16), {0, 4, 8, 12}, costs);
  const double ring = ring_seconds(ascending(16), {}, costs);
  ASSERT_LT(rows, ring);
  ASSERT_GT(rows, 0.99 * ring);
  EXPECT_THAT(ring_rows(ascending(16), costs), IsEmpty());
}

TEST(RingRows, BeginWithAHost) {
  // Four members on each of ten hosts: rows of 6 or 7 would cut hosts apart.
  RingCosts costs{.bandwidths = unnamed(10), .step_bytes = 1e5};
  for (std::uint32_t member = 0; member < 40; ++member) costs.hosts.push_back(member / 4);
  const Order rows = ring_rows(ascending(40), costs);
  ASSERT_FALSE(rows.empty());
  for (const std::uint32_t row : rows) EXPECT_EQ(row % 4, 0U);
  // Eight on each of two hosts: the four rows that are tried are two.
  costs.bandwidths = unnamed(2);
  costs.hosts.assign(16, 0);
  std::fill(costs.hosts.begin() + 8, costs.hosts.end(), 1);
  EXPECT_THAT(ring_rows(ascending(16), costs), ElementsAre(0, 8));
}

// Two sites: hosts 0, 2 and 4 at one, 1, 3 and 5 at the other. The ring of ring_order() begins
// within the first site, which is the last row.
TEST(RingRows, AreSitesWhereTheLineBetweenTheseIsSlow) {
  RingCosts costs{.hosts = ascending(6), .bandwidths = unnamed(6), .step_bytes = kStep};
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      if ((i + j) % 2 == 1) costs.bandwidths[i][j] = 100'000'000;
    }
  }
  const Order ring = ring_order(ascending(6), costs.bandwidths);
  ASSERT_THAT(ring, ElementsAre(0, 1, 3, 5, 2, 4));
  const Order rows = ring_rows(ring, costs);
  EXPECT_THAT(rows, ElementsAre(1, 4));
  // 2 (6 - 1) / 6 of the bytes pass a slow edge in one ring; in rows each of three carries a third.
  EXPECT_NEAR(ring_seconds(ring, {}, costs), 10.0 / 6.0 * kStep / 12.5e6, 0.02);
  EXPECT_NEAR(ring_seconds(ring, rows, costs), kStep / 3 / 12.5e6, 0.03);
  // Members that come later are on hosts of which nothing is said.
  Order more = ring;
  more.push_back(9);
  EXPECT_THAT(ring_rows(more, costs), ElementsAre(1, 4));
}

// In one ring of six a bucket passes both far lines twice, and in rows of three one of them.
TEST(RingRows, AreSitesWhereMessagesAreLongUnderWay) {
  RingCosts costs{.hosts = ascending(6), .bandwidths = unnamed(6), .step_bytes = 1e8};
  costs.delays.assign(6, std::vector<double>(6, 0.0));
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      if (i / 3 == j / 3) continue;
      costs.bandwidths[i][j] = 20'000'000'000;  // as fast as any
      costs.delays[i][j] = 0.05;
    }
  }
  EXPECT_THAT(ring_rows(ascending(6), costs), ElementsAre(0, 3));
  EXPECT_NEAR(ring_seconds(ascending(6), {}, costs), 4 * 0.05, 5e-3);
  EXPECT_NEAR(ring_seconds(ascending(6), {0, 3}, costs), 4 * 1e8 / 3 / 2.5e9 + 2 * 0.05, 1e-3);
  costs.delays.clear();
  EXPECT_THAT(ring_rows(ascending(6), costs), IsEmpty());
}

// Lines within the sites are as fast as those between them, or slower, but for a message.
TEST(RingRows, AreSitesWhoseLinesDifferInDelayAlone) {
  for (const std::uint64_t between : {1'000'000'000UL, 10'000'000'000UL}) {
    RingCosts costs{.hosts = ascending(4), .bandwidths = unnamed(4), .step_bytes = kStep};
    costs.delays.assign(4, std::vector<double>(4, 0.0));
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        costs.bandwidths[i][j] = i / 2 == j / 2 ? 1'000'000'000 : between;
        costs.delays[i][j] = i / 2 == j / 2 ? 0.0 : 0.05;
      }
    }
    EXPECT_THAT(ring_rows(ascending(4), costs), ElementsAre(0, 2)) << between;
    EXPECT_THAT(site_order(Order{1, 2, 3, 0}, costs), ElementsAre(2, 3, 0, 1)) << between;
  }
}

TEST(RingRows, SitesBeginBehindTheSlowestLine) {
  RingCosts costs{.hosts = ascending(4), .bandwidths = unnamed(4)};
  EXPECT_THAT(site_order(ascending(4), costs), ElementsAre(0, 1, 2, 3));
  costs.bandwidths[1][2] = costs.bandwidths[2][1] = 1'000'000'000;
  EXPECT_THAT(site_order(ascending(4), costs), ElementsAre(2, 3, 0, 1));
  // A line that is slow for messages may be slower than one that is slow for bytes.
  costs.delays.assign(4, std::vector<double>(4, 0.0));
  costs.delays[0][1] = 0.05;
  EXPECT_THAT(site_order(ascending(4), costs), ElementsAre(1, 2, 3, 0));
}

// Nothing is said of lines within a site, so they are no slower than those that are named.
TEST(RingRows, AreSitesWhereTheLineBetweenTheseIsFast) {
  RingCosts costs{.hosts = ascending(4), .bandwidths = unnamed(4), .step_bytes = 100 * kStep};
  for (const auto& [a, b] : {std::pair{0, 2}, {0, 3}, {1, 2}, {1, 3}}) {
    costs.bandwidths[a][b] = costs.bandwidths[b][a] = 40'000'000'000;
  }
  EXPECT_THAT(ring_rows(ascending(4), costs), IsEmpty());
  EXPECT_NEAR(ring_seconds(ascending(4), {}, costs), 1.5 * costs.step_bytes / 5e9, 0.01);
  // A slow line beside a fast one that is named still parts sites.
  costs.bandwidths[0][2] = costs.bandwidths[2][0] = 40'000'000'000;
  for (const auto& [a, b] : {std::pair{0, 3}, {1, 2}, {1, 3}}) {
    costs.bandwidths[a][b] = costs.bandwidths[b][a] = 1'000'000'000;
  }
  EXPECT_THAT(ring_rows(ascending(4), costs), ElementsAre(0, 2));
}

// The third host is slow to reach, and a row by itself.
TEST(RingRows, MayBeOneMember) {
  RingCosts costs{.hosts = ascending(3), .bandwidths = unnamed(3), .step_bytes = kStep};
  for (const std::size_t other : {0, 1}) {
    costs.bandwidths[2][other] = costs.bandwidths[other][2] = 100'000'000;
  }
  EXPECT_THAT(ring_rows(ascending(3), costs), ElementsAre(0, 2));
  // It sends for both columns.
  EXPECT_NEAR(ring_seconds(ascending(3), {0, 2}, costs), kStep / 12.5e6, 0.02);
}

// Lines between three sites are slow, and one of them not quite as slow as the others.
TEST(RingRows, MayEndAtLinesThatAreNotTheSlowest) {
  RingCosts costs{.hosts = ascending(6), .bandwidths = unnamed(6), .step_bytes = kStep};
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      const bool is_faster = i < 4 && j < 4;
      if (i / 2 != j / 2) costs.bandwidths[i][j] = is_faster ? 100'000'000 : 99'000'000;
    }
  }
  EXPECT_THAT(ring_rows(ascending(6), costs), ElementsAre(0, 2, 4));
}

// Two members on each of two hosts: one ring passes the line 2 (4 - 1) / 4 times, rows once.
TEST(RingRows, MayBeHosts) {
  RingCosts costs{.hosts = {0, 0, 1, 1}, .bandwidths = unnamed(2), .step_bytes = kStep};
  EXPECT_THAT(ring_rows(ascending(4), costs), ElementsAre(0, 2));
  EXPECT_NEAR(ring_seconds(ascending(4), {}, costs), 1.5 * kStep / kLineBytesPerSecond, 1e-4);
  EXPECT_NEAR(ring_seconds(ascending(4), {0, 2}, costs), kStep / kLineBytesPerSecond, 1e-3);
  costs.hosts = {0, 0, 0, 0};
  EXPECT_THAT(ring_rows(ascending(4), costs), IsEmpty());
}

// The bytes of a short row are not sent as often as those of a long one.
TEST(RingRows, MayBeSitesOfDifferentSize) {
  RingCosts costs{.hosts = ascending(10), .bandwidths = unnamed(10), .step_bytes = kStep};
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t j = 0; j < 10; ++j) {
      costs.bandwidths[i][j] = (i < 2) == (j < 2) ? 1'000'000'000 : 500'000'000;
    }
  }
  EXPECT_THAT(ring_rows(ascending(10), costs), ElementsAre(0, 2));
}

TEST(RingRows, EvenRowsDifferByOneMember) {
  for (const std::uint32_t members : {4U, 17U, 100U}) {
    for (std::uint32_t rows = 2; rows <= members; ++rows) {
      Order firsts = even_rows(members, rows);
      ASSERT_TRUE(are_rows(firsts, members));
      ASSERT_EQ(firsts.size(), rows);
      firsts.push_back(members);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::uint32_t length = firsts[i + 1] - firsts[i];
        ASSERT_TRUE(length == members / rows || length == members / rows + 1);
      }
    }
  }
}

}  // namespace
}  // namespace troupe::pipeline
