#include "config/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/micro_batch.h"
#include "pipeline/steps/ring_schedule.h"
#include "runtime/message.h"
#include "tests/config/config_support.h"
#include "tests/support/fails_with.h"

namespace troupe::config {
namespace {

using runtime::LinkPlan;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Members of 2 replicas; micro-batches of 1000 bytes.
constexpr NetworkSizes kClusterNetworks{1000, 100, 5'000'000};

runtime::Plan plan_of(const Topology& topology = two_replicas(), std::uint32_t members = 3,
                      const NetworkSizes& networks = kClusterNetworks) {
  auto plan = make_plan(topology, networks, members, {});
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? *plan : runtime::Plan{};
}

LinkPlan link(const runtime::Plan& plan, const std::string& from, const std::string& port) {
  for (const LinkPlan& each : runtime::links_of(plan)) {
    if (each.from == from && each.from_port == port) return each;
  }
  ADD_FAILURE() << "no link " << from << "." << port;
  return {};
}

TEST(ClusterPlan, PassesItsCheckWhateverItsSize) {
  for (const std::uint32_t members : {1u, 2u, 3u, 100u}) {
    for (const std::uint32_t replicas : {1u, 3u}) {
      for (const bool validator : {false, true}) {
        Topology topology;
        topology.replica.count = replicas;
        if (!validator) topology.validator.every = {Every::Unit::kNever, 0};
        const auto errors = runtime::check(plan_of(topology, members));
        EXPECT_TRUE(errors.empty()) << errors.front().message;
      }
    }
  }
}

TEST(ClusterPlan, PlacesTheComputingOnMembersAndTheRestOnTheHead) {
  const runtime::Plan plan = plan_of();
  EXPECT_THAT(runtime::nodes_of(plan), ElementsAre("head", "member.0", "member.1", "member.2"));
  const std::string text = runtime::print(plan);
  EXPECT_THAT(text, HasSubstr("  node head\n"
                              "    coordinator (coordinator)\n"
                              "      loader (loader, own thread)\n"
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
  const runtime::Plan plan = plan_of();
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

// A member's first replica tells of its steps when the member leads the View; all tell samples.
TEST(ClusterPlan, OnlyRingsAndWhatIsToldOfTrainingAndNodesLeaveAMember) {
  const runtime::Plan plan = plan_of();
  std::map<std::string, std::string> node;
  for (const runtime::ActorPlan& actor : plan.actors) node[actor.name] = actor.node;
  std::vector<std::string> crossing, telling;
  int rings = 0;
  for (const LinkPlan& each : runtime::links_of(plan)) {
    if (node[each.from] == node[each.to]) continue;
    if (node[each.from] == kHeadNode) continue;
    if (each.from_port == "samples") {
      EXPECT_EQ(each.to, "monitor");
      EXPECT_EQ(each.lane, runtime::Lane::kMetrics);
      telling.push_back(each.from);
    } else if (each.to_port == "ring") {
      ++rings;
    } else {
      crossing.push_back(each.from + " -> " + each.to);
    }
  }
  EXPECT_EQ(rings, 3 * 2) << "between all reducers";
  EXPECT_THAT(telling, UnorderedElementsAre("loader.0", "loader.1", "loader.2", "reducer.0",
                                            "reducer.1", "reducer.2", "replica.0", "replica.1",
                                            "replica.2", "replica.3", "replica.4", "replica.5"));
  EXPECT_THAT(crossing, UnorderedElementsAre("replica.0 -> checkpointer", "replica.0 -> validator",
                                             "replica.0 -> monitor", "replica.2 -> checkpointer",
                                             "replica.2 -> validator", "replica.2 -> monitor",
                                             "replica.4 -> checkpointer", "replica.4 -> validator",
                                             "replica.4 -> monitor", "member.0 -> monitor",
                                             "member.1 -> monitor", "member.2 -> monitor"));
  EXPECT_EQ(link(plan, "member.1", "metrics").lane, runtime::Lane::kMetrics);
}

// A member may have no data, and which one, the plan does not say.
TEST(ClusterPlan, OnlyWhatFeedsReplicasLeavesTheHeadAndIsBoundedAsBesideThem) {
  const runtime::Plan plan = plan_of();
  std::map<std::string, std::string> node;
  for (const runtime::ActorPlan& actor : plan.actors) node[actor.name] = actor.node;
  std::size_t crossing = 0;
  for (const LinkPlan& each : plan.links) {
    if (node[each.from] == node[each.to] || node[each.from] != kHeadNode) continue;
    EXPECT_EQ(each.from, kHeadLoader);
    const LinkPlan& own =
        link(plan, loader_name(static_cast<std::uint32_t>(crossing / 2)), each.from_port);
    EXPECT_EQ(each.to, "replica." + std::to_string(crossing));
    EXPECT_EQ(each.to_port, own.to_port);
    EXPECT_EQ(each.message_credits, own.message_credits);
    EXPECT_EQ(each.byte_credits, own.byte_credits);
    ++crossing;
  }
  EXPECT_EQ(crossing, 6U);
}

// In any order that a View puts them in, each can send to the one behind it.
TEST(ClusterPlan, EveryReducerHasALinkToEveryOther) {
  for (const std::uint32_t members : {2U, 3U, 16U}) {
    const runtime::Plan plan = plan_of(two_replicas(), members);
    std::size_t found = 0;
    for (const LinkPlan& edge : links_of(plan)) found += edge.to_port == "ring" ? 1 : 0;
    EXPECT_EQ(found, std::size_t{members} * (members - 1));
    for (std::uint32_t from = 0; from < members; ++from) {
      for (std::uint32_t to = 0; to < members; ++to) {
        if (from == to) continue;
        const LinkPlan& edge =
            link(plan, fmt::format("reducer.{}", from), fmt::format("ring.{}", to));
        EXPECT_EQ(edge.to, fmt::format("reducer.{}", to));
        EXPECT_EQ(edge.to_port, "ring");
      }
    }
  }
}

TEST(ClusterPlan, OneMemberHasNoRing) { EXPECT_TRUE(plan_of(two_replicas(), 1).meshes.empty()); }

// What comes before its turn waits there, and must not stand before what it waits for. Before all
// that can come the sums of a step.
TEST(ClusterPlan, EdgesOfTheRingHaveRoomForTwoStepsAndTheSumsOfAnother) {
  NetworkSizes large = kClusterNetworks;
  large.contribution_elements = 1'000'000;
  const runtime::Plan plan = plan_of(two_replicas(), 3, large);
  const LinkPlan& edge = link(plan, "reducer.2", "ring.0");
  EXPECT_EQ(edge.to, "reducer.0");
  EXPECT_GE(edge.tokens, 1);
  const auto buckets = pipeline::make_buckets(1'000'000, 1 << 20, 3);
  const auto count = static_cast<std::uint32_t>(buckets.size());
  std::int64_t messages = 0;
  for (std::uint32_t position = 0; position < 3; ++position) {
    messages = std::max(
        messages, 2 * pipeline::BucketRoutes(3).messages(count, position, (position + 1) % 3));
  }
  EXPECT_GE(edge.message_credits, messages + count + 1);
  EXPECT_GE(edge.byte_credits, 2 * 2 * 8'000'000 * 2 / 3 + 8'000'000);
}

TEST(ClusterPlan, RingCannotBeGivenLessRoom) {
  Topology topology = two_replicas();
  LinkOverride& change = topology.links.emplace_back();
  change.from = "reducer";
  change.to = "reducer";
  change.credits = 1;
  change.bytes = 100;
  change.tokens = 0;
  const auto plan = make_plan(topology, kClusterNetworks, 3, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("links.0.credits: all that crosses an edge"));
  EXPECT_THAT(plan.error().message, HasSubstr("links.0.bytes: all that crosses an edge"));
  EXPECT_THAT(plan.error().message, HasSubstr("links.0.tokens: reducers wait for each other"));
  change = {};
  change.from = "reducer";
  change.to = "reducer";
  change.credits = 1000;
  EXPECT_TRUE(make_plan(topology, kClusterNetworks, 3, {}).ok());
}

// What of an iteration is a replica's own depends on the View, and is taken in at once.
TEST(ClusterPlan, BatchLinksHaveRoomForTheLoadersCreditsAndTheEndWhateverTheShares) {
  Topology uneven = two_replicas();
  uneven.cluster.shares = {1, 3, 0};
  const auto owners = pipeline::assign_micro_batches(8, replica_weights(uneven, 3));
  EXPECT_THAT(owners, ElementsAre(0, 1, 2, 2, 2, 3, 3, 3));
  // Asked for, and room for what may be measured to be needed.
  for (const auto& [credits, room] : {std::pair{4, 4}, {0, 64}}) {
    uneven.loader.credits = credits;
    const runtime::Plan plan = plan_of(uneven);
    for (int i = 0; i < 6; ++i) {
      const LinkPlan& batches =
          link(plan, "loader." + std::to_string(i / 2), "batches." + std::to_string(i));
      EXPECT_EQ(batches.message_credits, room + 1) << i;
      EXPECT_EQ(batches.byte_credits, (room + 1) * (1000 + runtime::Message::kOverheadBytes)) << i;
    }
    EXPECT_TRUE(runtime::check(plan).empty());
  }
}

TEST(ClusterPlan, SnapshotsHaveRoomForTwoStates) {
  const runtime::Plan plan = plan_of();
  for (const char* replica : {"replica.0", "replica.2", "replica.4"}) {
    for (const char* port : {"snapshots", "validation"}) {
      const LinkPlan& snapshots = link(plan, replica, port);
      EXPECT_EQ(snapshots.message_credits, 2);
      EXPECT_GE(snapshots.byte_credits, 2 * (5'000'000 + runtime::Message::kOverheadBytes));
    }
  }
}

TEST(ClusterPlan, OverridesReachEveryLinkOfTheirKindsHoweverLittleTheyLeave) {
  Topology uneven = two_replicas();
  uneven.cluster.shares = {1, 3, 0};
  LinkOverride& change = uneven.links.emplace_back();
  change.from = "loader";
  change.to = "replica";
  change.credits = 1;
  const auto plan = make_plan(uneven, kClusterNetworks, 3, {});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  int found = 0;
  for (const LinkPlan& each : plan->links) {
    if (each.to_port != "batches") continue;
    EXPECT_EQ(each.message_credits, 1) << each.from;
    ++found;
  }
  EXPECT_EQ(found, 2 * 6) << "of the loaders beside them, and of the head's";
  EXPECT_TRUE(runtime::check(*plan).empty());
  change.to = "reducer";
  ASSERT_THAT(
      make_plan(uneven, kClusterNetworks, 3, {}),
      FailsWith(runtime::ErrorKind::kTopology, "links.0: there is no link from loader to reducer"));
}

}  // namespace
}  // namespace troupe::config
