#include "runtime/node/introducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Neighbours, NodesThatShareLinksAreNeighboursUnlessOneIsTheFirst) {
  Plan plan;
  for (const char* node : {"a", "c", "b", "d"}) {
    plan.actors.push_back({std::string("root.") + node, "root", "", false, node});
  }
  plan.links = {{"root.a", "1", "root.b", "in"},
                {"root.b", "1", "root.c", "in"},
                {"root.c", "1", "root.b", "in"},
                {"root.b", "2", "root.b", "in"},
                {"root.d", "1", "root.a", "in"}};
  const Neighbours neighbours(plan);
  EXPECT_EQ(neighbours.first(), "a");
  EXPECT_THAT(neighbours.neighbours_of("a"), IsEmpty());
  EXPECT_THAT(neighbours.neighbours_of("b"), ElementsAre("c"));
  EXPECT_THAT(neighbours.neighbours_of("c"), ElementsAre("b"));
  EXPECT_THAT(neighbours.neighbours_of("d"), IsEmpty());
}

TEST(Neighbours, NodesOfAMeshAreAllNeighboursUnlessOneIsTheFirst) {
  Plan plan;
  for (const char* node : {"a", "c", "b", "d", "e"}) {
    plan.actors.push_back({std::string("root.") + node, "root", "", false, node});
  }
  plan.links = {{"root.d", "1", "root.b", "in"}};
  plan.meshes = {{{"root.a", "root.b", "root.c"}, "ring"}, {{"root.a", "root.e"}, "other"}};
  const Neighbours neighbours(plan);
  EXPECT_THAT(neighbours.neighbours_of("a"), IsEmpty());
  EXPECT_THAT(neighbours.neighbours_of("b"), ElementsAre("c", "d"));
  EXPECT_THAT(neighbours.neighbours_of("c"), ElementsAre("b"));
  EXPECT_THAT(neighbours.neighbours_of("e"), IsEmpty());
  for (const char* one : {"a", "b", "c", "d", "e"}) {
    const auto all = neighbours.neighbours_of(one);
    EXPECT_EQ(neighbours.has_neighbours(one), !all.empty()) << one;
    for (const char* other : {"a", "b", "c", "d", "e"}) {
      EXPECT_EQ(neighbours.are_neighbours(one, other), all.contains(other)) << one << other;
    }
  }
}

// In the plan's order, not that of their names.
TEST(Neighbours, TheNodeThatThePlanNamesLaterDials) {
  Plan plan;
  for (const char* node : {"a", "c", "b"}) {
    plan.actors.push_back({std::string("root.") + node, "root", "", false, node});
  }
  const Neighbours neighbours(plan);
  EXPECT_TRUE(neighbours.dials("b", "c"));
  EXPECT_FALSE(neighbours.dials("c", "b"));
  EXPECT_TRUE(neighbours.dials("c", "a"));
  EXPECT_FALSE(neighbours.dials("a", "a"));
}

}  // namespace
}  // namespace troupe::runtime
