#include "launch/utc_time.h"

#include <gtest/gtest.h>

namespace troupe::launch {
namespace {

using std::chrono::milliseconds;
using TimeOfDay = std::chrono::system_clock::time_point;

TEST(UtcTime, IsWrittenToTheMillisecondAndReadAgain) {
  const TimeOfDay time{milliseconds(1'738'323'296'789)};
  EXPECT_EQ(utc_text(time), "2025-01-31T11:34:56.789Z");
  EXPECT_EQ(utc_time("2025-01-31T11:34:56.789Z"), time);
}

TEST(UtcTime, OtherTextIsTheEpoch) {
  for (const char* text : {"", "yesterday", "2025-01-31T11:34:56", "2025-01-31 11:34:56.789Z"}) {
    EXPECT_EQ(utc_time(text), TimeOfDay{}) << text;
  }
}

}  // namespace
}  // namespace troupe::launch
