#include "runtime/plan_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

namespace troupe::runtime {
namespace {

// A head and so many members of two replicas each, of which the first tells the head.
Plan members(int count) {
  Plan plan;
  plan.actors.push_back({"coordinator", "coordinator", "", false, "head"});
  plan.actors.push_back({"monitor", "monitor", "coordinator", true, "head"});
  for (int i = 0; i < count; ++i) {
    const std::string member = fmt::format("member.{}", i), reducer = fmt::format("reducer.{}", i);
    plan.actors.push_back({member, "member", "", false, member});
    plan.actors.push_back({reducer, "reducer", member, false, member});
    for (const int replica : {2 * i, 2 * i + 1}) {
      const std::string name = fmt::format("replica.{}", replica);
      plan.actors.push_back({name, "replica", member, true, member});
      plan.links.push_back(
          {name, "contributions", reducer, "contributions", Lane::kData, 4, 2'100'000});
      plan.links.push_back({reducer, fmt::format("reduced.{}", replica), name, "reduced",
                            Lane::kData, 4, 2'100'000, 1});
    }
    plan.links.push_back({fmt::format("replica.{}", 2 * i), "metrics", "monitor", "metrics",
                          Lane::kMetrics, 1024, 1 << 20});
  }
  return plan;
}

TEST(PlanGroups, EqualActorsAndLinksStandInOneLineWithTheirCount) {
  EXPECT_EQ(print_groups(members(64)),
            "actors, each below its owner:\n"
            "  node head\n"
            "    coordinator (coordinator)\n"
            "      monitor (monitor, own thread)\n"
            "  node member.0..63\n"
            "    member.0..63 (member)\n"
            "      reducer.0..63 (reducer)\n"
            "      replica.0..127 (replica, own thread)\n"
            "links, each with what may be under way on it:\n"
            "  replica.0..127 -> reducer.0..63: contributions, 128 links, 4 messages, 2.1 MB\n"
            "  reducer.0..63 -> replica.0..127: reduced, 128 links, 4 messages, 2.1 MB, 1 token\n"
            "  replica.0..126 (64 of them) -> monitor: metrics, 64 links, 1024 messages, 1.0 MB, "
            "between nodes\n");
}

TEST(PlanGroups, TakeAsManyLinesForManyNodesAsForTwo) {
  const std::string two = print_groups(members(2)), many = print_groups(members(200));
  EXPECT_EQ(std::count(two.begin(), two.end(), '\n'), std::count(many.begin(), many.end(), '\n'));
}

TEST(PlanGroups, AMeshTakesOneLine) {
  Plan plan = members(3);
  plan.meshes = {{{"reducer.0", "reducer.1", "reducer.2"}, "ring", Lane::kData, 4, 2'100'000, 1}};
  const std::string text = print_groups(plan);
  const std::string line =
      "  reducer.0..2 -> reducer.0..2: ring, 6 links, 4 messages, 2.1 MB, 1 token, each to each "
      "other\n";
  EXPECT_EQ(text.substr(text.size() - line.size()), line);
}

TEST(PlanGroups, WhatDiffersInMoreThanANumberStandsApart) {
  Plan plan;
  plan.actors.push_back({"root", "group", ""});
  plan.actors.push_back({"loader", "loader", "root", true});
  plan.actors.push_back({"loader.0", "loader", "root", true});
  plan.actors.push_back({"loader.1", "loader", "root", false});
  plan.links.push_back({"loader.0", "batches.7", "root", "batches", Lane::kData, 5, 100});
  plan.links.push_back({"loader.1", "batches.8", "root", "batches", Lane::kData, 6, 100});
  EXPECT_EQ(print_groups(plan),
            "actors, each below its owner:\n"
            "  root (group)\n"
            "    loader (loader, own thread)\n"
            "    loader.0 (loader, own thread)\n"
            "    loader.1 (loader)\n"
            "links, each with what may be under way on it:\n"
            "  loader.0 -> root: batches, 5 messages, 100 bytes\n"
            "  loader.1 -> root: batches, 6 messages, 100 bytes\n");
}

}  // namespace
}  // namespace troupe::runtime
