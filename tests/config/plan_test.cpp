#include "config/plan.h"

#include <gmock/gmock.h>

#include "config/topology_file.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::HasSubstr;
using testing::Not;

// Micro-batches of 1000 bytes.
constexpr NetworkSizes kNetworks{1000, 100, 0};

runtime::Result<runtime::Plan> plan_with(const std::string& links) {
  const std::string text = "model: {zoo: toy}\ndata: {train: none.h5}\nlinks:\n" + links;
  const auto loaded = parse_topology(text, "bad.yaml", ".");
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  Topology topology = two_replicas();
  topology.links = loaded->topology.links;
  return make_plan(topology, kNetworks, 0, loaded->origins);
}

TEST(LocalPlan, PassesItsCheck) {
  const auto plan = make_plan(two_replicas(), kNetworks, 0, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(runtime::check(*plan).empty());
}

TEST(LocalPlan, OverrideSetsEveryLinkBetweenTheKinds) {
  const auto plan = plan_with("  - {from: loader, to: replica, credits: 3, bytes: 3384}\n");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  int found = 0;
  for (const runtime::LinkPlan& link : plan->links) {
    if (link.from != "loader" || link.to == "monitor") continue;
    EXPECT_EQ(link.message_credits, 3);
    EXPECT_EQ(link.byte_credits, 3384);
    ++found;
  }
  EXPECT_EQ(found, 2);
}

TEST(LocalPlan, SamplesHaveLinksBesideThoseOfLinesOnTheLaneThatMayDrop) {
  const auto plan = make_plan(two_replicas(), kNetworks, 0, {});
  ASSERT_TRUE(plan.ok());
  std::vector<std::string> telling;
  for (const runtime::LinkPlan& link : plan->links) {
    if (link.to != "monitor") continue;
    EXPECT_EQ(link.lane, runtime::Lane::kMetrics);
    telling.push_back(link.from + "." + link.from_port);
  }
  EXPECT_THAT(telling, testing::UnorderedElementsAre("replica.0.metrics", "validator.metrics",
                                                     "checkpointer.metrics", "replica.0.samples",
                                                     "replica.1.samples", "reducer.samples",
                                                     "loader.samples"));
}

TEST(LocalPlan, OverridesThatCannotRunAreAllRefusedAtTheirPlaces) {
  const auto plan = plan_with(R"(  - {from: loader, to: replica, credits: 1}
  - {from: loader, to: replica, bytes: 1}
  - {from: reducer, to: replica, tokens: 0}
  - {from: monitor, to: loader, credits: 8}
  - {from: replica, to: checkpointer, credits: 1}
)");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, runtime::ErrorKind::kTopology);
  const std::string& message = plan.error().message;
  EXPECT_THAT(message, Not(HasSubstr("links.0")));
  EXPECT_THAT(message, Not(HasSubstr("links.1")));
  EXPECT_THAT(message, HasSubstr("bad.yaml:6:42: links.2.tokens: reducer and replica wait"));
  EXPECT_THAT(message, HasSubstr("bad.yaml:7:5: links.3: there is no link from monitor to loader; "
                                 "there are loader -> replica, replica -> reducer, "));
  EXPECT_THAT(message, Not(HasSubstr("links.4")));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

TEST(LocalPlan, OverridesOfLinksThatOtherRunsHaveSetNothing) {
  const auto plan = plan_with("  - {from: reducer, to: reducer, credits: 1}\n");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto without = make_plan(two_replicas(), kNetworks, 0, {});
  EXPECT_EQ(runtime::print(*plan), runtime::print(*without));
}

TEST(LocalPlan, OnlyLinksThatCanBeNamedAreOffered) {
  const auto plan = plan_with("  - {from: monitor, to: loader, credits: 8}\n");
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("reducer -> reducer"));
  EXPECT_THAT(plan.error().message, Not(HasSubstr("member")));
}

TEST(LocalPlan, OneMicroBatchPassesAloneWhateverItsBytes) {
  Topology topology = two_replicas();
  LinkOverride& change = topology.links.emplace_back();
  change.from = "loader";
  change.to = "replica";
  change.bytes = 1;
  EXPECT_TRUE(make_plan(topology, kNetworks, 0, {}).ok());
}

}  // namespace
}  // namespace troupe::config
