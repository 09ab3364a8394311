#include "config/cluster_plan.h"

#include <gmock/gmock.h>

#include <map>

#include "config/topology_file.h"
#include "pipeline/micro_batch.h"
#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::LinkPlan;
using testing::ElementsAre;
using testing::HasSubstr;

// 3 members of 2 replicas; 8 micro-batches of 1000 bytes.
ClusterPlanOptions options() {
  ClusterPlanOptions options;
  options.members = 3;
  options.replicas_per_member = 2;
  options.micro_batches = 8;
  options.loader_credits = 4;
  options.batch_bytes = 1000;
  options.contribution_elements = 100;
  options.state_bytes = 5'000'000;
  return options;
}

runtime::Plan plan_of(const ClusterPlanOptions& options) {
  auto plan = make_cluster_plan(options, {}, {});
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? *plan : runtime::Plan{};
}

const LinkPlan& link(const runtime::Plan& plan, const std::string& from, const std::string& port) {
  for (const LinkPlan& each : plan.links) {
    if (each.from == from && each.from_port == port) return each;
  }
  ADD_FAILURE() << "no link " << from << "." << port;
  static const LinkPlan kNone;
  return kNone;
}

TEST(ClusterPlan, PassesItsCheckWhateverItsSize) {
  for (const std::uint32_t members : {1u, 2u, 3u, 100u}) {
    for (const std::uint32_t replicas : {1u, 3u}) {
      for (const bool validator : {false, true}) {
        ClusterPlanOptions each = options();
        each.members = members;
        each.replicas_per_member = replicas;
        each.validator = validator;
        const auto errors = runtime::check(plan_of(each));
        EXPECT_TRUE(errors.empty()) << errors.front().message;
      }
    }
  }
}

TEST(ClusterPlan, PlacesTheComputingOnMembersAndTheRestOnTheHead) {
  const runtime::Plan plan = plan_of(options());
  EXPECT_THAT(runtime::nodes_of(plan), ElementsAre("head", "member.0", "member.1", "member.2"));
  const std::string text = runtime::print(plan);
  EXPECT_THAT(text, HasSubstr("  node head\n"
                              "    coordinator (coordinator)\n"
                              "      reducer (reducer)\n"
                              "      checkpointer (checkpointer, own thread)\n"
                              "      validator (validator, own thread)\n"
                              "      monitor (monitor, own thread)\n"));
  EXPECT_THAT(text, HasSubstr("  node member.1\n"
                              "    member.1 (member)\n"
                              "      loader.1 (loader, own thread)\n"
                              "      replica.2 (replica, own thread)\n"
                              "      replica.3 (replica, own thread)\n"));
}

TEST(ClusterPlan, EachReplicaIsFedByTheLoaderBesideItAndReducedAtTheHead) {
  const runtime::Plan plan = plan_of(options());
  std::map<std::string, std::string> node;
  for (const runtime::ActorPlan& actor : plan.actors) node[actor.name] = actor.node;
  int crossing = 0;
  for (const LinkPlan& each : plan.links) {
    if (node[each.from] == node[each.to]) continue;
    ++crossing;
    EXPECT_TRUE(node[each.from] == "head" || node[each.to] == "head") << each.from << each.to;
  }
  EXPECT_EQ(crossing, 6 * 2 + 3);  // and snapshots, validation and metrics of replica.0
  for (int i = 0; i < 6; ++i) {
    const std::string name = "replica." + std::to_string(i);
    const LinkPlan& batches =
        link(plan, "loader." + std::to_string(i / 2), "batches." + std::to_string(i));
    EXPECT_EQ(batches.to, name);
    EXPECT_EQ(node[batches.from], node[name]);
    EXPECT_EQ(link(plan, name, "contributions").to, "reducer");
    const LinkPlan& reduced = link(plan, "reducer", "reduced." + std::to_string(i));
    EXPECT_EQ(reduced.to, name);
    EXPECT_EQ(reduced.tokens, 1);
  }
}

TEST(ClusterPlan, BatchLinksHaveRoomForTheShareOfTheirMember) {
  ClusterPlanOptions uneven = options();
  uneven.shares = {1, 3, 0};
  const runtime::Plan plan = plan_of(uneven);
  const auto owners = pipeline::assign_micro_batches(8, replica_weights(uneven));
  EXPECT_THAT(owners, ElementsAre(0, 1, 2, 2, 2, 3, 3, 3));
  const std::vector<std::int64_t> shares{1, 1, 3, 3, 0, 0};
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const LinkPlan& batches =
        link(plan, "loader." + std::to_string(i / 2), "batches." + std::to_string(i));
    EXPECT_EQ(batches.message_credits, shares[i] + 5) << i;
    EXPECT_EQ(batches.byte_credits, (shares[i] + 5) * (1000 + runtime::Message::kOverheadBytes))
        << i;
  }
  EXPECT_TRUE(runtime::check(plan).empty());
}

TEST(ClusterPlan, SnapshotsHaveRoomForTwoStates) {
  const runtime::Plan plan = plan_of(options());
  for (const char* port : {"snapshots", "validation"}) {
    const LinkPlan& snapshots = link(plan, "replica.0", port);
    EXPECT_EQ(snapshots.message_credits, 2);
    EXPECT_GE(snapshots.byte_credits, 2 * (5'000'000 + runtime::Message::kOverheadBytes));
  }
}

TEST(ClusterPlan, OverridesReachEveryLinkOfTheirKindsAndAreHeldToTheLargestShare) {
  ClusterPlanOptions uneven = options();
  uneven.shares = {1, 3, 0};
  LinkOverride change;
  change.from = "loader";
  change.to = "replica";
  change.credits = 3;
  const auto plan = make_cluster_plan(uneven, {change}, {});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  for (const LinkPlan& each : plan->links) {
    EXPECT_TRUE(each.to_port != "batches" || each.message_credits == 3) << each.from;
  }
  change.credits = 2;
  const auto refused = make_cluster_plan(uneven, {change}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, runtime::ErrorKind::kTopology);
  EXPECT_THAT(refused.error().message, HasSubstr("links.0.credits: a replica keeps the 3 "));
}

}  // namespace
}  // namespace troupe::config
