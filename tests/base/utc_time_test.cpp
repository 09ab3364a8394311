#include "runtime/base/utc_time.h"

#include <gtest/gtest.h>

#include "runtime/base/clock.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;
using TimeOfDay = std::chrono::sys_time<milliseconds>;

TEST(UtcTime, IsWrittenToTheMillisecondOrTheSecondAndReadAgain) {
  const TimeOfDay time{milliseconds(1'738'323'296'789)};
  EXPECT_EQ(utc_text(time), "2025-01-31T11:34:56.789Z");
  EXPECT_EQ(read_utc("2025-01-31T11:34:56.789Z"), time);
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  EXPECT_EQ(utc_text(second), "2025-01-31T11:34:56Z");
  EXPECT_EQ(read_utc("2025-01-31T11:34:56Z"), second);
}

TEST(UtcTime, YearsFarAheadAreRead) {
  const auto last = read_utc("9999-12-31T23:59:59Z");
  ASSERT_TRUE(last);
  EXPECT_EQ(utc_text(std::chrono::floor<std::chrono::seconds>(*last)), "9999-12-31T23:59:59Z");
  EXPECT_EQ(seconds_since_1970(*last), 253402300799.0) << "nanoseconds would not hold it";
}

TEST(UtcTime, OtherTextIsNoTime) {
  for (const char* text :
       {"", "yesterday", "2025-01-31T11:34:56", "2025-01-31 11:34:56.789Z",
        "2025-01-31T11:34:56.789Z ", " 2025-01-31T11:34:56Z", "2025-01-31T11:34:56.78Z",
        "2026-02-31T12:00:00Z", "2025-1-31T11:34:56Z"}) {
    EXPECT_EQ(read_utc(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace troupe::runtime
