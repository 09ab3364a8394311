#include "runtime/base/nearest_word.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::runtime {
namespace {

TEST(NearestWord, DistanceCountsEditsAndNeighbouringSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("credtis", "credits"), 1);
  EXPECT_EQ(edit_distance("Micro-Batch", "micro_batch"), 0);
}

TEST(NearestWord, NearWordIsMeantAndFarWordIsNot) {
  const std::vector<std::string> known{"loader", "replica", "reducer"};
  EXPECT_EQ(nearest_word("reducr", known), "reducer");
  EXPECT_EQ(nearest_word("redcuer", known), "reducer");
  EXPECT_EQ(nearest_word("monitor", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word(std::string(100'000, 'r'), known), "");
}

}  // namespace
}  // namespace troupe::runtime
