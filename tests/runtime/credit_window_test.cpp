#include "runtime/credit_window.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(CreditWindow, AdmitsUpToItsMessagesAndNoMore) {
  CreditWindow window(2, 1000);
  window.sent(10);
  EXPECT_TRUE(window.admits(10));
  window.sent(10);
  EXPECT_FALSE(window.admits(10));
  window.returned(1, 10);
  EXPECT_TRUE(window.admits(10));
}

TEST(CreditWindow, AdmitsExactlyItsBytes) {
  CreditWindow window(100, 1000);
  window.sent(600);
  EXPECT_TRUE(window.admits(400));
  EXPECT_FALSE(window.admits(401));
}

TEST(CreditWindow, OversizedMessagePassesAlone) {
  CreditWindow window(100, 1000);
  EXPECT_TRUE(window.admits(5000));
  window.sent(1);
  EXPECT_FALSE(window.admits(5000));
  window.returned(1, 1);
  window.sent(5000);
  EXPECT_FALSE(window.admits(1));
  window.returned(2, 5001);
  EXPECT_TRUE(window.admits(1));
}

TEST(CreditWindow, RepeatedAndLateReturnsChangeNothing) {
  CreditWindow window(4, 1000);
  for (int i = 0; i < 4; ++i) window.sent(100);
  window.returned(2, 200);
  window.returned(2, 200);
  window.returned(1, 100);
  EXPECT_EQ(window.messages_out(), 2);
  EXPECT_EQ(window.bytes_out(), 200);
}

TEST(CreditWindow, TotalsOfManyTerabytesDoNotOverflow) {
  CreditWindow window(1, std::int64_t{1} << 40);
  for (std::int64_t i = 1; i <= 1000; ++i) {
    const std::int64_t bytes = std::int64_t{1} << 40;
    ASSERT_TRUE(window.admits(bytes));
    window.sent(bytes);
    window.returned(i, i * bytes);
  }
  EXPECT_EQ(window.bytes_out(), 0);
}

}  // namespace
}  // namespace troupe::runtime
