#include "config/workers.h"

#include <gmock/gmock.h>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kHosts = kLeast + "cluster:\n  hosts: [{address: a, workers: 2}, {address: b}]\n";

TEST(Workers, AreThoseOfTheHostsUnlessTheCommandLineSaysOtherwise) {
  EXPECT_EQ(workers_of(parsed(kLeast).topology, {}), 0u);
  EXPECT_EQ(workers_of(parsed(kLeast).topology, 2), 2u);
  EXPECT_EQ(workers_of(parsed(kHosts).topology, {}), 3u);
  EXPECT_EQ(workers_of(parsed(kHosts).topology, 0), 0u);
  EXPECT_EQ(workers_of(parsed(kLeast + "cluster: {hosts: []}\n").topology, {}), 0u);
}

TEST(Workers, SharesAreTheirsOrAllEqual) {
  const LoadedTopology even = parsed(kHosts);
  EXPECT_THAT(*member_shares(even.topology, 3, even.origins), IsEmpty());
  const LoadedTopology uneven = parsed(kHosts + "  assign: [1, 3, 0]\n");
  EXPECT_THAT(*member_shares(uneven.topology, 3, uneven.origins), ElementsAre(1, 3, 0));
  const auto other = member_shares(uneven.topology, 2, uneven.origins);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, runtime::ErrorKind::kTopology);
  EXPECT_EQ(other.error().message,
            "t.yaml:5:11: cluster.assign: 3 shares for 2 workers; give one for each, or auto");
}

TEST(Workers, AreAtLeastAsManyAsTheRunGoesOnWith) {
  const LoadedTopology loaded = parsed(kHosts + "  failure: {min_members: 3}\n");
  EXPECT_TRUE(enough_members(loaded.topology, 3, loaded.origins).ok());
  const auto fewer = enough_members(loaded.topology, 2, loaded.origins);
  ASSERT_FALSE(fewer.ok());
  EXPECT_EQ(fewer.error().kind, runtime::ErrorKind::kTopology);
  EXPECT_EQ(fewer.error().message,
            "t.yaml:5:26: cluster.failure.min_members: 3 is more than the 2 workers that the run "
            "begins with");
}

TEST(Workers, AutoTakesSharesBack) {
  const LoadedTopology loaded = parsed(kHosts + "  assign: [1, 3, 0]\n", {"cluster.assign=auto"});
  EXPECT_THAT(loaded.topology.cluster.shares, IsEmpty());
}

}  // namespace
}  // namespace troupe::config
