#include "config/suggestion.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::config {
namespace {

TEST(Suggestion, DistanceCountsEditsAndNeighbouringSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("credtis", "credits"), 1);
  EXPECT_EQ(edit_distance("Micro-Batch", "micro_batch"), 0);
}

TEST(Suggestion, NearWordIsMeantAndFarWordIsNot) {
  const std::vector<std::string> known{"loader", "replica", "reducer"};
  EXPECT_EQ(nearest("reducr", known), "reducer");
  EXPECT_EQ(nearest("redcuer", known), "reducer");
  EXPECT_EQ(nearest("monitor", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest(std::string(100'000, 'r'), known), "");
}

TEST(Suggestion, WithoutNearWordAllKnownOnesAreListed) {
  const std::vector<std::string> known{"g", "d"};
  EXPECT_EQ(suggestion("generator", known), "; known here: g, d");
  EXPECT_EQ(suggestion("generator", {}), "");
}

}  // namespace
}  // namespace troupe::config
