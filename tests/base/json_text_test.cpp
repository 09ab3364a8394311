#include "runtime/base/json_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(JsonText, EscapesQuotesBackslashesAndControls) {
  EXPECT_EQ(json_string("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
}

TEST(JsonText, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(json_string("\xC3\xA9"), "\"\xC3\xA9\"");
  EXPECT_EQ(json_string("a\xFFz"), "\"a\\ufffdz\"");
  EXPECT_EQ(json_string("\xC3"), "\"\\ufffd\"");
  EXPECT_EQ(json_string("\xED\xA0\x80").find("\xED"), std::string::npos);
}

TEST(JsonText, NumbersThatJsonLacksAreNull) {
  EXPECT_EQ(json_number(0.5), "0.5");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), "null");
}

}  // namespace
}  // namespace troupe::runtime
