#include "telemetry/sinks/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::telemetry {
namespace {

using testing::StartsWith;

// tests/telemetry/independent_readers reads them with programs of others.
TEST(Png, BeginsWithTheSignatureAndTheSizes) {
  const auto encoded = png({258, 2, std::vector<std::uint8_t>(258 * 2, 7)});
  ASSERT_TRUE(encoded.ok());
  const std::string expected("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\2\x08\0\0\0\0", 29);
  EXPECT_THAT(*encoded, StartsWith(expected));
  // The end of every PNG there is.
  EXPECT_EQ(encoded->substr(encoded->size() - 12), std::string("\0\0\0\0IEND\xae\x42\x60\x82", 12));
}

TEST(Png, SameColourAllOverIsSmall) {
  const auto encoded = png({1000, 1000, std::vector<std::uint8_t>(1000 * 1000)});
  ASSERT_TRUE(encoded.ok());
  EXPECT_LT(encoded->size(), 10'000u);
}

}  // namespace
}  // namespace troupe::telemetry
