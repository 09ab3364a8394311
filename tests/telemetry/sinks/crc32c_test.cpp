#include "telemetry/sinks/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::telemetry {
namespace {

// The examples of RFC 3720, B.4.
TEST(Crc32c, IsWhatTheStandardPrints) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising += byte;
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
}

TEST(Crc32c, MaskIsRotationAndConstant) {
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
  // 0xe3069283 rotated right by 15 is 0x2507c60d.
  EXPECT_EQ(masked_crc32c("123456789"), 0x2507c60du + 0xa282ead8u);
}

}  // namespace
}  // namespace troupe::telemetry
