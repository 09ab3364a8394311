#include "pipeline/steps/ring_positions.h"

#include <gmock/gmock.h>

#include <vector>

#include "pipeline/steps/membership.h"
#include "tests/pipeline/membership_answers.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Hosts 0 and 1 are at one site, hosts 2 and 3 at the other; their members have the same numbers.
RingCosts two_sites() {
  RingCosts costs{.hosts = {0, 1, 2, 3}, .step_bytes = 7e6};
  costs.bandwidths.assign(4, std::vector<std::uint64_t>(4, kUnnamedBandwidth));
  for (const std::uint32_t here : {0, 1}) {
    for (const std::uint32_t there : {2, 3}) {
      costs.bandwidths[here][there] = costs.bandwidths[there][here] = 100'000'000;
    }
  }
  return costs;
}

TEST(RingPositions, NewcomerStandsBehindThoseThatAreNearest) {
  RingPositions positions({0, 2, 3, 1}, two_sites());
  EXPECT_THAT(positions.ring_of({0, 1, 2, 3, 7}), ElementsAre(0, 2, 3, 1, 7))
      << "it has no place yet";
  positions.put(7, {2, 3});
  positions.put(8, {1});
  positions.put(9, {});
  EXPECT_THAT(positions.ring_of({0, 1, 2, 3, 7, 8, 9}), ElementsAre(0, 2, 3, 7, 1, 8, 9));
  EXPECT_THAT(positions.ring_of({0, 7, 8}), ElementsAre(0, 7, 8)) << "others are lost";
  // Another process comes in its place, at the other site; and near one that has gone.
  positions.put(7, {0});
  positions.put(8, {7});
  EXPECT_THAT(positions.ring_of({0, 1, 2, 3, 7, 8}), ElementsAre(0, 7, 8, 2, 3, 1));
}

TEST(RingPositions, MemberOfTheFirstRingKeepsItsPlace) {
  RingPositions positions({0, 2, 3, 1}, two_sites());
  positions.put(1, {2});
  EXPECT_THAT(positions.ring_of({0, 1, 2, 3}), ElementsAre(0, 2, 3, 1));
}

TEST(RingPositions, LinesOfANewcomerAreThoseOfItsNeighbour) {
  RingPositions positions({0, 1, 2, 3}, two_sites());
  const std::vector<std::uint32_t> sites{0, 2};
  ASSERT_EQ(positions.rows_of({0, 1, 2, 3}), sites);
  positions.put(5, {0, 1});
  positions.put(6, {5});
  // Without 0 and 1, of whose lines something is said, the border is known all the same.
  EXPECT_THAT(positions.ring_of({2, 3, 5, 6}), ElementsAre(5, 6, 2, 3));
  EXPECT_EQ(positions.rows_of({5, 6, 2, 3}), sites);
  EXPECT_THAT(positions.by_site({2, 3, 5, 6}), ElementsAre(5, 6, 2, 3));
  // It is nobody's neighbour any more.
  positions.put(5, {});
  positions.put(6, {5});
  EXPECT_THAT(positions.rows_of({2, 3, 5, 6}), IsEmpty());
}

TEST(RingPositions, SitesAreTakenFromTheSlowestLineOn) {
  RingPositions positions({0, 2, 3, 1}, two_sites());
  EXPECT_THAT(positions.by_site({0, 1, 2, 3}), ElementsAre(2, 3, 1, 0));
  positions.put(7, {0});
  positions.put(8, {3});
  EXPECT_THAT(positions.by_site({0, 1, 2, 3, 7, 8}), ElementsAre(2, 3, 8, 1, 0, 7));
  EXPECT_THAT(RingPositions({4, 0, 2}, {}).by_site({0, 2, 4}), ElementsAre(4, 0, 2))
      << "all lines are alike";
}

// Two workers of four parts, each made by a site. A newcomer takes parts of its own site's worker,
// whatever its number.
TEST(RingPositions, WorkersOfSitesAreMadeByMembersThatAreNear) {
  MembershipOptions options;
  options.ring = {0, 2, 3, 1};
  options.costs = two_sites();
  options.weights.assign(6, 1);
  options.micro_batches = 8;
  options.parts = 4;
  Membership membership(options);
  EXPECT_THAT(membership.begin(7).owners, ElementsAre(2, 2, 3, 3, 1, 1, 0, 0));
  membership.positions().put(5, {2, 3});
  membership.admit(5);
  for (const std::uint32_t member : {0, 1, 2, 3}) expect_none(membership.halted(member, {1, 2}, 7));
  const View view = expect_view(membership.halted(5, {1, 2}, 7));
  EXPECT_THAT(view.ring, ElementsAre(0, 2, 3, 5, 1));
  ASSERT_EQ(view.later.size(), 1U);
  EXPECT_THAT(view.later.front().owners, ElementsAre(2, 2, 3, 5, 1, 1, 0, 0));
}

}  // namespace
}  // namespace troupe::pipeline
