#include "pipeline/steps/ring_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Order = std::vector<std::uint32_t>;
using RingSpeeds = std::vector<std::uint64_t>;

Order one_each(std::size_t count) {
  Order hosts(count);
  std::iota(hosts.begin(), hosts.end(), 0u);
  return hosts;
}

HostBandwidths equal(std::size_t hosts, std::uint64_t speed) {
  return HostBandwidths(hosts, RingSpeeds(hosts, speed));
}

void set(HostBandwidths& bandwidths, std::size_t a, std::size_t b, std::uint64_t speed) {
  bandwidths[a][b] = bandwidths[b][a] = speed;
}

// Symmetric, each of `values` speeds as likely.
HostBandwidths drawn(std::size_t hosts, std::uint32_t values, std::uint32_t number) {
  HostBandwidths bandwidths = equal(hosts, 0);
  std::uint32_t index = 0;
  for (std::size_t a = 0; a < hosts; ++a) {
    for (std::size_t b = a + 1; b < hosts; ++b) {
      const std::uint32_t word = runtime::random_word({.seed = 7, .micro_batch = number}, index++);
      set(bandwidths, a, b, 100 + word % values);
    }
  }
  return bandwidths;
}

// For the edges of a cycle of hosts, slowest first.
RingSpeeds edges_of(const Order& cycle, const HostBandwidths& bandwidths) {
  RingSpeeds speeds;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    speeds.push_back(bandwidths[cycle[i]][cycle[(i + 1) % cycle.size()]]);
  }
  std::sort(speeds.begin(), speeds.end());
  return speeds;
}

// Tries all, in lexicographical order.
Order best_of_all(std::size_t hosts, const HostBandwidths& bandwidths) {
  Order order = one_each(hosts), best = order;
  RingSpeeds of_best = edges_of(best, bandwidths);
  while (std::next_permutation(order.begin() + 1, order.end())) {
    RingSpeeds speeds = edges_of(order, bandwidths);
    if (speeds <= of_best) continue;
    best = order;
    of_best = std::move(speeds);
  }
  return best;
}

bool is_permutation_from_0(Order order, std::size_t count) {
  if (order.empty() || order.front() != 0) return false;
  std::sort(order.begin(), order.end());
  return order == one_each(count);
}

TEST(RingOrder, HasEveryMemberOfFewOnes) {
  EXPECT_THAT(ring_order(Order{}, equal(3, 5)), IsEmpty());
  EXPECT_THAT(ring_order(Order{0}, equal(1, 5)), ElementsAre(0));
  EXPECT_THAT(ring_order(Order{1, 0}, equal(2, 5)), ElementsAre(0, 1));
  EXPECT_THAT(ring_order(Order{0, 0}, equal(2, 5)), ElementsAre(0, 1));
  EXPECT_THAT(ring_order(Order{2, 1, 0}, drawn(3, 9, 1)), ElementsAre(0, 1, 2));
}

TEST(RingOrder, IsTheBestThereIsAndOfEqualOnesTheFirst) {
  for (std::size_t hosts = 2; hosts <= 8; ++hosts) {
    for (const std::uint32_t values : {1u, 2u, 3u, 10u, 1'000'000u}) {
      for (std::uint32_t number = 0; number < 8; ++number) {
        const HostBandwidths bandwidths = drawn(hosts, values, number);
        ASSERT_EQ(ring_order(one_each(hosts), bandwidths), best_of_all(hosts, bandwidths))
            << hosts << " hosts, " << values << " speeds, number " << number;
      }
    }
  }
}

TEST(RingOrder, AvoidsTheOneSlowLink) {
  HostBandwidths bandwidths = equal(4, 1000);
  set(bandwidths, 0, 1, 10);
  EXPECT_THAT(ring_order(one_each(4), bandwidths), ElementsAre(0, 2, 1, 3));
}

TEST(RingOrder, CrossesBetweenTwoSitesTwiceOnly) {
  HostBandwidths bandwidths = equal(6, 10);  // even hosts at one site, odd ones at the other
  for (const auto& [a, b] : {std::pair{0, 2}, {2, 4}, {0, 4}, {1, 3}, {3, 5}, {1, 5}}) {
    set(bandwidths, static_cast<std::size_t>(a), static_cast<std::size_t>(b), 1000);
  }
  EXPECT_THAT(ring_order(one_each(6), bandwidths), ElementsAre(0, 1, 3, 5, 2, 4));
}

TEST(RingOrder, TheSlowerDirectionCounts) {
  HostBandwidths bandwidths = equal(4, 1000);
  bandwidths[2][1] = 10;  // from 1 to 2 it is 1000
  EXPECT_THAT(ring_order(one_each(4), bandwidths), ElementsAre(0, 1, 3, 2));
  bandwidths = equal(4, 1000);
  bandwidths[1][2] = 10;
  EXPECT_THAT(ring_order(one_each(4), bandwidths), ElementsAre(0, 1, 3, 2));
}

TEST(RingOrder, EqualBandwidthsKeepTheOrderOfMembers) {
  for (std::size_t members = 1; members <= 64; ++members) {
    EXPECT_EQ(ring_order(one_each(members), equal(members, 5)), one_each(members));
  }
}

TEST(RingOrder, MembersOfAHostStandTogetherWhateverTheBandwidths) {
  for (std::uint32_t number = 0; number < 50; ++number) {
    const std::size_t hosts = 2 + number % 14;
    Order host_of_member;
    for (std::uint32_t m = 0; m < 64; ++m) {
      host_of_member.push_back(runtime::random_word({.seed = 8, .micro_batch = number}, m) % hosts);
    }
    const Order order = ring_order(host_of_member, drawn(hosts, 5, number));
    ASSERT_TRUE(is_permutation_from_0(order, 64));
    std::size_t changes = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint32_t member = order[i], next = order[(i + 1) % order.size()];
      const bool stays = host_of_member[member] == host_of_member[next];
      EXPECT_TRUE(!stays || member < next);
      changes += !stays;
    }
    EXPECT_EQ(changes,
              std::set<std::uint32_t>(host_of_member.begin(), host_of_member.end()).size());
  }
}

TEST(RingOrder, HostsWithoutMembersChangeNothing) {
  HostBandwidths bandwidths = equal(6, 1000);
  set(bandwidths, 1, 3, 10);
  for (std::size_t other = 0; other < 6; ++other) set(bandwidths, other, 5, 1);
  EXPECT_THAT(ring_order(Order{1, 3, 0, 4}, bandwidths), ElementsAre(0, 2, 1, 3));
}

TEST(RingOrder, FindsTheFastRingHiddenAmong64Hosts) {
  for (std::uint32_t number = 0; number < 20; ++number) {
    Order hidden = one_each(64);
    for (std::uint32_t i = 63; i > 1; --i) {  // all but host 0 change places
      const std::uint32_t word = runtime::random_word({.seed = 6, .micro_batch = number}, i);
      std::swap(hidden[i], hidden[1 + word % i]);
    }
    if (hidden[1] > hidden[63]) std::reverse(hidden.begin() + 1, hidden.end());
    HostBandwidths bandwidths = equal(64, 10);
    for (std::size_t i = 0; i < 64; ++i) set(bandwidths, hidden[i], hidden[(i + 1) % 64], 1000);
    EXPECT_EQ(ring_order(one_each(64), bandwidths), hidden);
  }
}

TEST(RingOrder, Of64HostsInFourRacksCrossesBetweenRacksFourTimesOnly) {
  HostBandwidths bandwidths = equal(64, 10);
  for (std::size_t a = 0; a < 64; ++a) {
    for (std::size_t b = 0; b < 64; ++b) bandwidths[a][b] = a % 4 == b % 4 ? 1000 : 10;
  }
  const Order order = ring_order(one_each(64), bandwidths);
  ASSERT_TRUE(is_permutation_from_0(order, 64));
  RingSpeeds expected(64, 1000);
  std::fill_n(expected.begin(), 4, 10);
  EXPECT_EQ(edges_of(order, bandwidths), expected);
}

TEST(RingOrder, BeyondTheExactHostsLeavesNoExchangeOfTwoEdgesThatHelps) {
  for (std::uint32_t number = 0; number < 20; ++number) {
    const std::size_t hosts = kExactRingHosts + 1 + number;
    HostBandwidths bandwidths = drawn(hosts, number % 2 == 0 ? 1000 : 20, number);
    for (std::size_t a = 0; number % 2 == 1 && a < hosts; ++a) {  // racks, and noise
      for (std::size_t b = a % 3; b < hosts; b += 3) bandwidths[a][b] += 1000;
    }
    const Order order = ring_order(one_each(hosts), bandwidths);
    ASSERT_TRUE(is_permutation_from_0(order, hosts));
    const RingSpeeds speeds = edges_of(order, bandwidths);
    for (std::size_t i = 1; i < hosts; ++i) {
      for (std::size_t j = i + 2; j <= hosts; ++j) {
        Order other = order;
        std::reverse(other.begin() + static_cast<std::ptrdiff_t>(i),
                     other.begin() + static_cast<std::ptrdiff_t>(j));
        ASSERT_LE(edges_of(other, bandwidths), speeds);
      }
    }
  }
}

TEST(RingOrderDeathTest, MissingBandwidthsBreakAnInvariant) {
  EXPECT_DEATH(ring_order(Order{0, 2}, equal(2, 5)), "a host without bandwidths");
  HostBandwidths ragged = equal(3, 5);
  ragged[1].pop_back();
  EXPECT_DEATH(ring_order(Order{0, 1}, ragged), "rows of other hosts");
}

}  // namespace
}  // namespace troupe::pipeline
