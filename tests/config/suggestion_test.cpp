#include "config/place.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::config {
namespace {

TEST(Suggestion, NearWordIsAskedFor) {
  const std::vector<std::string> known{"loader", "replica", "reducer"};
  EXPECT_EQ(suggestion("reducr", known), "; did you mean \"reducer\"?");
}

TEST(Suggestion, WithoutNearWordAllKnownOnesAreListed) {
  const std::vector<std::string> known{"g", "d"};
  EXPECT_EQ(suggestion("generator", known), "; known here: g, d");
  EXPECT_EQ(suggestion("generator", {}), "");
}

}  // namespace
}  // namespace troupe::config
