#include "config/cluster_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "pipeline/buckets.h"
#include "pipeline/micro_batch.h"
#include "pipeline/ring_schedule.h"
#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::LinkPlan;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

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
                              "      checkpointer (checkpointer, own thread)\n"
                              "      validator (validator, own thread)\n"
                              "      monitor (monitor, own thread)\n"));
  EXPECT_THAT(text, HasSubstr("  node member.1\n"
                              "    member.1 (member)\n"
                              "      loader.1 (loader, own thread)\n"
                              "      replica.2 (replica, own thread)\n"
                              "      replica.3 (replica, own thread)\n"
                              "      reducer.1 (reducer)\n"));
}

TEST(ClusterPlan, EachReplicaIsFedAndReducedBesideIt) {
  const runtime::Plan plan = plan_of(options());
  std::map<std::string, std::string> node;
  for (const runtime::ActorPlan& actor : plan.actors) node[actor.name] = actor.node;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "replica." + std::to_string(i);
    const std::string reducer = "reducer." + std::to_string(i / 2);
    const LinkPlan& batches =
        link(plan, "loader." + std::to_string(i / 2), "batches." + std::to_string(i));
    EXPECT_EQ(batches.to, name);
    EXPECT_EQ(node[batches.from], node[name]);
    EXPECT_EQ(link(plan, name, "contributions").to, reducer);
    EXPECT_EQ(node[reducer], node[name]);
    const LinkPlan& reduced = link(plan, reducer, "reduced." + std::to_string(i));
    EXPECT_EQ(reduced.to, name);
    EXPECT_EQ(reduced.tokens, 1);
  }
}

TEST(ClusterPlan, OnlyTheRingAndWhatReplicaZeroTellsLeaveANode) {
  const runtime::Plan plan = plan_of(options());
  std::map<std::string, std::string> node;
  for (const runtime::ActorPlan& actor : plan.actors) node[actor.name] = actor.node;
  std::vector<std::string> crossing;
  for (const LinkPlan& each : plan.links) {
    if (node[each.from] != node[each.to]) crossing.push_back(each.from + " -> " + each.to);
  }
  EXPECT_THAT(crossing, UnorderedElementsAre("reducer.0 -> reducer.1", "reducer.1 -> reducer.2",
                                             "reducer.2 -> reducer.0", "replica.0 -> checkpointer",
                                             "replica.0 -> validator", "replica.0 -> monitor"));
}

// Every member sends to the one that stands behind it, and its place is as the schedule counts.
TEST(ClusterPlan, LinksAndPlacesFollowTheOrderOfTheRing) {
  for (std::uint32_t members = 1; members <= 64; ++members) {
    ClusterPlanOptions turned = options();
    turned.members = members;
    turned.ring_order.resize(members);
    std::iota(turned.ring_order.begin(), turned.ring_order.end(), 0u);
    std::reverse(turned.ring_order.begin() + 1, turned.ring_order.end());
    const runtime::Plan plan = plan_of(turned);
    EXPECT_TRUE(runtime::check(plan).empty());
    for (std::uint32_t place = 0; place < members; ++place) {
      const std::uint32_t member = turned.ring_order[place];
      EXPECT_EQ(ring_position(plan, member), place);
      if (members == 1) continue;
      EXPECT_EQ(link(plan, fmt::format("reducer.{}", member), "ring").to,
                fmt::format("reducer.{}", turned.ring_order[(place + 1) % members]));
    }
  }
}

TEST(ClusterPlan, WithoutAnOrderPlacesAreNumbers) {
  const runtime::Plan plan = plan_of(options());
  for (std::uint32_t member = 0; member < 3; ++member) {
    EXPECT_EQ(ring_position(plan, member), member);
  }
}

// Nodes that meet compare the text of their plans, so that none stands in a ring of its own.
TEST(ClusterPlan, EveryOrderOfTheRingIsAnotherPlan) {
  ClusterPlanOptions each = options();
  each.members = 5;
  each.ring_order = {0, 1, 2, 3, 4};
  std::set<std::string> texts;
  std::size_t orders = 0;
  do {
    texts.insert(runtime::print(plan_of(each)));
    ++orders;
  } while (std::next_permutation(each.ring_order.begin() + 1, each.ring_order.end()));
  EXPECT_EQ(orders, 24u);
  EXPECT_EQ(texts.size(), orders);
}

TEST(ClusterPlan, OneMemberHasNoRing) {
  ClusterPlanOptions alone = options();
  alone.members = 1;
  for (const LinkPlan& each : plan_of(alone).links) EXPECT_NE(each.to_port, "ring");
}

// What comes before its turn waits there, and must not stand before what it waits for.
TEST(ClusterPlan, EdgesOfTheRingHaveRoomForTwoSteps) {
  ClusterPlanOptions large = options();
  large.contribution_elements = 1'000'000;
  const LinkPlan& edge = link(plan_of(large), "reducer.2", "ring");
  EXPECT_EQ(edge.to, "reducer.0");
  EXPECT_GE(edge.tokens, 1);
  std::int64_t messages = 0;
  const auto buckets = pipeline::make_buckets(1'000'000, 1 << 20, 3);
  for (std::uint32_t position = 0; position < 3; ++position) {
    const auto count = static_cast<std::uint32_t>(buckets.size());
    messages = std::max(messages, 2 * pipeline::ring_messages(count, position, 3));
  }
  EXPECT_GE(edge.message_credits, messages);
  EXPECT_GE(edge.byte_credits, 2 * 2 * 8'000'000 * 2 / 3);
}

TEST(ClusterPlan, RingCannotBeGivenLessRoom) {
  LinkOverride change;
  change.from = "reducer";
  change.to = "reducer";
  change.credits = 1;
  change.bytes = 100;
  change.tokens = 0;
  const auto plan = make_cluster_plan(options(), {change}, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("links.0.credits: all that crosses an edge"));
  EXPECT_THAT(plan.error().message, HasSubstr("links.0.bytes: all that crosses an edge"));
  EXPECT_THAT(plan.error().message, HasSubstr("links.0.tokens: reducers wait for each other"));
  change = {};
  change.from = "reducer";
  change.to = "reducer";
  change.credits = 1000;
  EXPECT_TRUE(make_cluster_plan(options(), {change}, {}).ok());
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
    // One more for what a replica computes to compare.
    EXPECT_EQ(batches.message_credits, shares[i] + 6) << i;
    EXPECT_EQ(batches.byte_credits, (shares[i] + 6) * (1000 + runtime::Message::kOverheadBytes))
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
  change.credits = 4;
  const auto plan = make_cluster_plan(uneven, {change}, {});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  for (const LinkPlan& each : plan->links) {
    EXPECT_TRUE(each.to_port != "batches" || each.message_credits == 4) << each.from;
  }
  change.credits = 3;
  const auto refused = make_cluster_plan(uneven, {change}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, runtime::ErrorKind::kTopology);
  EXPECT_THAT(refused.error().message, HasSubstr("links.0.credits: a replica keeps the 4 "));
}

}  // namespace
}  // namespace troupe::config
