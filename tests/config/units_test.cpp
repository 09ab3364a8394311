#include "config/units.h"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

using namespace std::chrono_literals;

TEST(Units, DurationsKeepTheirValueThroughText) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("2 s"), 2s);
  EXPECT_EQ(parse_duration("10min"), 10min);
  for (const std::int64_t ns : {0L, 1L, 1'500'000L, 90'000'000'000L, 86'400'001'000'000L}) {
    const runtime::Duration duration(ns);
    EXPECT_EQ(parse_duration(print_duration(duration)), duration);
  }
  EXPECT_EQ(print_duration(90s), "90s");
  EXPECT_EQ(print_duration(120s), "2min");
}

TEST(Units, WhatIsNoDurationIsRefused) {
  for (const char* text : {"", "5", "s", "-1s", "1.5s", "1 week", "1sx", "99999999999h", " 1s"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
}

TEST(Units, BytesKeepTheirValueThroughText) {
  EXPECT_EQ(parse_bytes("1MiB"), 1 << 20);
  EXPECT_EQ(parse_bytes("64 KiB"), 64 << 10);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(print_bytes(3 << 20), "3MiB");
  EXPECT_EQ(print_bytes(1025), "1025B");
  for (const std::int64_t bytes : {0L, 1L, 1024L, 1536L, 5L << 30}) {
    EXPECT_EQ(parse_bytes(print_bytes(bytes)), bytes);
  }
}

TEST(Units, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "1MB", "MiB", "-1", "1.5MiB", "99999999999GiB", "1 Mi"}) {
    EXPECT_FALSE(parse_bytes(text).has_value()) << text;
  }
}

TEST(Units, RatesKeepTheirValueThroughText) {
  EXPECT_EQ(parse_rate("100Mbit"), 100'000'000);
  EXPECT_EQ(parse_rate("10 Gbit"), 10'000'000'000);
  EXPECT_EQ(print_rate(2'500'000'000), "2500Mbit");
  EXPECT_EQ(print_rate(1'234), "1234bit");
  for (const std::int64_t bits : {0L, 1L, 56'000L, 100'000'000L, 1'000'000'000'000'000L}) {
    EXPECT_EQ(parse_rate(print_rate(bits)), bits);
  }
}

TEST(Units, WhatIsNoRateIsRefused) {
  for (const char* text : {"", "100", "100MB", "100mbit", "1.5Gbit", "-1Mbit", "100Mbit/s",
                           "1000001Gbit", "99999999999Gbit"}) {
    EXPECT_FALSE(parse_rate(text).has_value()) << text;
  }
}

TEST(Units, EveryIsReadInSingularAndPlural) {
  EXPECT_EQ(parse_every("1 epoch"), (Every{Every::Unit::kEpochs, 1}));
  EXPECT_EQ(parse_every("50 iterations"), (Every{Every::Unit::kIterations, 50}));
  EXPECT_EQ(parse_every("none"), (Every{Every::Unit::kNever, 0}));
  for (const char* text : {"", "epoch", "0 epochs", "1 week", "-1 epoch", "1"}) {
    EXPECT_FALSE(parse_every(text).has_value()) << text;
  }
  EXPECT_EQ(print_every({Every::Unit::kEpochs, 2}), "2 epochs");
  EXPECT_EQ(print_every({Every::Unit::kIterations, 1}), "1 iteration");
}

TEST(Units, EveryIsDueAtItsMultiples) {
  const Every two_epochs{Every::Unit::kEpochs, 2}, five{Every::Unit::kIterations, 5};
  EXPECT_TRUE(two_epochs.due(20, 2, true));
  EXPECT_FALSE(two_epochs.due(19, 2, false));
  EXPECT_FALSE(two_epochs.due(10, 1, true));
  EXPECT_TRUE(five.due(10, 0, false));
  EXPECT_FALSE(five.due(11, 1, true));
  EXPECT_FALSE((Every{Every::Unit::kNever, 0}.due(10, 1, true)));
}

}  // namespace
}  // namespace troupe::config
