#include <gtest/gtest.h>

#include "runtime/node/link.h"

namespace troupe::runtime {
namespace {

TEST(Credit, AdmitsUpToItsMessagesAndNoMore) {
  EXPECT_TRUE(credit_admits(10, 1, 10, 2, 1000));
  EXPECT_FALSE(credit_admits(10, 2, 20, 2, 1000));
}

TEST(Credit, AdmitsExactlyItsBytes) {
  EXPECT_TRUE(credit_admits(400, 1, 600, 100, 1000));
  EXPECT_FALSE(credit_admits(401, 1, 600, 100, 1000));
}

TEST(Credit, OversizedMessagePassesAlone) {
  EXPECT_TRUE(credit_admits(5000, 0, 0, 100, 1000));
  EXPECT_FALSE(credit_admits(5000, 1, 1, 100, 1000));
  EXPECT_FALSE(credit_admits(1, 1, 5000, 100, 1000));
}

}  // namespace
}  // namespace troupe::runtime
