#include "runtime/base/amount_text.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(AmountText, SmallSumsHaveDigitsToo) {
  EXPECT_EQ(amount_text(0.0), "0.00");
  EXPECT_EQ(amount_text(1234.567), "1234.57");
  EXPECT_EQ(amount_text(0.1), "0.10");
  EXPECT_EQ(amount_text(0.05), "0.050");
  EXPECT_EQ(amount_text(0.0042), "0.0042");
  EXPECT_EQ(amount_text(-0.00042), "-0.00042");
  EXPECT_EQ(amount_text(1.5e-9), "0.0000000015");
  EXPECT_EQ(amount_text(1e-300), "0.00");
}

}  // namespace
}  // namespace troupe::runtime
