#include "config/member_ring.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "pipeline/steps/ring_order.h"
#include "runtime/base/random.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::ElementsAre;

ClusterSection cluster(const std::string& text) {
  return parsed(kLeast + "cluster: {" + text + "}\n").topology.cluster;
}

std::string text_of(const ClusterSection& cluster, std::uint32_t members) {
  return ring_text(cluster, members, ring_costs(cluster, members));
}

constexpr const char* kSites =
    "hosts: [{address: a1, workers: 2}, {address: b1}, {address: a2}, {address: b2, workers: 2}], "
    "bandwidth: [{between: [[a1, a2], [b1, b2]], rate: 100Mbit}]";

TEST(MemberRing, CrossesBetweenTwoSitesOnceEachWay) {
  EXPECT_THAT(member_ring(cluster(kSites), 6), ElementsAre(0, 1, 2, 4, 5, 3));
  EXPECT_EQ(
      text_of(cluster(kSites), 6),
      "ring: a1 (member.0, member.1) -> b1 (member.2) -> b2 (member.4, member.5) -> a2 "
      "(member.3) -> a1; slowest edge a1 -> b1, 100Mbit; 2 rows, each a ring of its own, begin "
      "with member.2, member.3");
}

// Lines within a site are named too, and as fast for bytes.
TEST(MemberRing, KeepsSitesTogetherWhoseLinesDifferInDelayAlone) {
  const auto text_with = [](const std::string& delay) {
    const ClusterSection sites = cluster(
        "hosts: [{address: a1}, {address: b1}, {address: a2}, {address: b2}], bandwidth: "
        "[{between: [a1, a2], rate: 20Gbit}, {between: [b1, b2], rate: 20Gbit}, "
        "{between: [[a1, a2], [b1, b2]], rate: 20Gbit" +
        delay + "}]");
    pipeline::RingCosts costs = ring_costs(sites, 4);
    costs.step_bytes = 1e8;
    return ring_text(sites, 4, costs);
  };
  EXPECT_EQ(text_with(""),
            "ring: a1 (member.0) -> b1 (member.1) -> a2 (member.2) -> b2 (member.3) -> a1; slowest "
            "edge a1 -> b1, 20Gbit");
  EXPECT_EQ(text_with(", delay: 50ms"),
            "ring: a1 (member.0) -> b1 (member.1) -> b2 (member.3) -> a2 (member.2) -> a1; slowest "
            "edge a1 -> b1, 20Gbit and 50ms; 2 rows, each a ring of its own, begin with member.1, "
            "member.2");
}

TEST(MemberRing, WithoutBandwidthsIsTheOrderOfTheFile) {
  const ClusterSection three =
      cluster("hosts: [{address: c, workers: 2}, {address: a}, {address: b}]");
  EXPECT_THAT(member_ring(three, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(
      text_of(three, 4),
      "ring: c (member.0, member.1) -> a (member.2) -> b (member.3) -> c; "
      "cluster.bandwidth says nothing of its edges; 3 rows, each a ring of its own, begin with "
      "member.0, member.2, member.3");
}

TEST(MemberRing, OfManyMembersHasRows) {
  EXPECT_EQ(text_of({}, 16),
            "ring: 4 rows, each a ring of its own, begin with member.0, member.4, member.8, "
            "member.12");
}

TEST(MemberRing, MembersOfOneAddressStandTogether) {
  const ClusterSection twice = cluster("hosts: [{address: a}, {address: b}, {address: a}]");
  EXPECT_THAT(member_ring(twice, 3), ElementsAre(0, 2, 1));
  EXPECT_THAT(text_of(twice, 3), testing::StartsWith("ring: a (member.0, member.2) -> b "));
}

TEST(MemberRing, LaterItemsWin) {
  const std::string hosts =
      "hosts: [{address: a}, {address: b}, {address: c}, {address: d}], bandwidth: [";
  const std::string slow = "{between: [a, b], rate: 1Mbit}";
  const std::string fast = "{between: [b, a], rate: 2Gbit}";
  const std::string rest = "{between: [[a, b], [c, d]], rate: 1Gbit}, ";
  EXPECT_THAT(member_ring(cluster(hosts + rest + fast + ", " + slow + "]"), 4),
              ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(member_ring(cluster(hosts + rest + slow + ", " + fast + "]"), 4),
              ElementsAre(0, 1, 2, 3));
}

TEST(MemberRing, PairsOfWhichNothingIsSaidAreFasterThanAllOthers) {
  // For a and c, and for b and d.
  const ClusterSection four = cluster(
      "hosts: [{address: a}, {address: b}, {address: c}, {address: d}], bandwidth: "
      "[{between: [a, [b, d]], rate: 1000000Gbit}, {between: [c, [b, d]], rate: 1Gbit}]");
  EXPECT_THAT(member_ring(four, 4), ElementsAre(0, 1, 3, 2));
}

TEST(MemberRing, OtherNumbersOfMembersStandInTheirOrder) {
  EXPECT_THAT(member_ring(cluster(kSites), 5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(member_ring(cluster(kSites), 7), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(member_ring({}, 2), ElementsAre(0, 1));
  EXPECT_EQ(text_of(cluster(kSites), 5), "");
  EXPECT_EQ(text_of({}, 2), "");
}

TEST(MemberRing, OfOneHostIsNotToldOf) {
  EXPECT_EQ(text_of(cluster("hosts: [{address: a, workers: 4}]"), 4), "");
}

// A cluster with so many members and some rates, and what ring_order() is to be asked for it.
struct Drawn {
  ClusterSection cluster;
  std::vector<std::uint32_t> host_of_member;
  pipeline::HostBandwidths bandwidths;
};

Drawn drawn(std::uint32_t members) {
  std::uint32_t index = 0;
  const auto below = [&](std::uint32_t bound) {
    return runtime::random_word({.seed = 5, .micro_batch = members}, index++) % bound;
  };
  Drawn result;
  while (result.host_of_member.size() < members) {
    const auto host = static_cast<std::uint32_t>(result.cluster.hosts.size());
    const auto left = members - static_cast<std::uint32_t>(result.host_of_member.size());
    const std::uint32_t workers = std::min(left, 1 + below(6));
    result.cluster.hosts.push_back({fmt::format("host{}", host), workers});
    result.host_of_member.insert(result.host_of_member.end(), workers, host);
  }
  const auto hosts = static_cast<std::uint32_t>(result.cluster.hosts.size());
  result.bandwidths.assign(
      hosts, std::vector<std::uint64_t>(hosts, std::numeric_limits<std::uint64_t>::max()));
  for (std::uint32_t a = 0; a < hosts; ++a) {
    for (std::uint32_t b = a + 1; b < hosts; ++b) {
      const std::uint32_t rate = below(4);
      if (rate == 0) continue;
      result.cluster.bandwidth.push_back(
          {{{{result.cluster.hosts[b].address}, {result.cluster.hosts[a].address}}},
           rate * 1'000'000});
      result.bandwidths[a][b] = result.bandwidths[b][a] = rate * 1'000'000;
    }
  }
  return result;
}

TEST(MemberRing, IsTheRingOrderOfTheirHosts) {
  std::size_t orders_of_choice = 0;
  for (std::uint32_t members = 1; members <= 64; ++members) {
    const Drawn each = drawn(members);
    const auto ring = member_ring(each.cluster, members);
    EXPECT_EQ(ring, pipeline::ring_order(each.host_of_member, each.bandwidths)) << members;
    if (!std::is_sorted(ring.begin(), ring.end())) ++orders_of_choice;
  }
  EXPECT_GT(orders_of_choice, 32u);
}

}  // namespace
}  // namespace troupe::config
