#include "telemetry/node_table.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::telemetry {
namespace {

NodeFacts told(const std::string& name, const std::string& state) {
  return {.name = name, .state = state};
}

// A run may see any number of processes.
TEST(NodeTable, NewNodeTakesThePlaceOfTheOneThatWasOverFirst) {
  NodeTable table(3);
  table.take(told("a", "running"), 1.0);
  table.take(told("b", "running"), 2.0);
  table.take(told("c", "running"), 3.0);
  table.take(told("d", "running"), 4.0);
  EXPECT_FALSE(table.find("d")) << "all others are up";
  table.take(told("c", "dead"), 5.0);
  table.take(told("b", "ended"), 6.0);
  table.take(told("d", "running"), 7.0);
  EXPECT_TRUE(table.find("d"));
  EXPECT_FALSE(table.find("c"));
  EXPECT_TRUE(table.find("b"));
  EXPECT_EQ(table.all().size(), 3U);
}

}  // namespace
}  // namespace troupe::telemetry
