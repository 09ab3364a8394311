#include "runtime/node/fellowship.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Fellowship, NodesThatShareLinksAreFellowsUnlessOneIsTheFirst) {
  Plan plan;
  for (const char* node : {"a", "c", "b", "d"}) {
    plan.actors.push_back({std::string("root.") + node, "root", "", false, node});
  }
  plan.links = {{"root.a", "1", "root.b", "in"},
                {"root.b", "1", "root.c", "in"},
                {"root.c", "1", "root.b", "in"},
                {"root.b", "2", "root.b", "in"},
                {"root.d", "1", "root.a", "in"}};
  const Fellowship fellowship(plan);
  EXPECT_EQ(fellowship.first(), "a");
  EXPECT_THAT(fellowship.fellows_of("a"), IsEmpty());
  EXPECT_THAT(fellowship.fellows_of("b"), ElementsAre("c"));
  EXPECT_THAT(fellowship.fellows_of("c"), ElementsAre("b"));
  EXPECT_THAT(fellowship.fellows_of("d"), IsEmpty());
}

// In the plan's order, not that of their names.
TEST(Fellowship, TheNodeThatThePlanNamesLaterDials) {
  Plan plan;
  for (const char* node : {"a", "c", "b"}) {
    plan.actors.push_back({std::string("root.") + node, "root", "", false, node});
  }
  const Fellowship fellowship(plan);
  EXPECT_TRUE(fellowship.dials("b", "c"));
  EXPECT_FALSE(fellowship.dials("c", "b"));
  EXPECT_TRUE(fellowship.dials("c", "a"));
  EXPECT_FALSE(fellowship.dials("a", "a"));
}

}  // namespace
}  // namespace troupe::runtime
