#include "telemetry/series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::telemetry {
namespace {

TEST(Series, ShortCurveIsKeptAsItIs) {
  Series series(4);
  for (std::uint64_t x = 0; x < 4; ++x) series.add(10 * x, static_cast<double>(x));
  ASSERT_EQ(series.points().size(), 4);
  EXPECT_EQ(series.width(), 1);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const SeriesPoint& point = series.points()[i];
    EXPECT_EQ(point.x, 10 * i);
    EXPECT_EQ(point.count, 1);
    EXPECT_EQ(point.mean, static_cast<double>(i));
    EXPECT_EQ(point.low, point.high);
  }
}

TEST(Series, FullCurveHalvesAndLosesNeitherMeanNorExtremes) {
  Series series(8);
  constexpr std::uint64_t kNumbers = 1000;
  double sum = 0.0;
  for (std::uint64_t x = 0; x < kNumbers; ++x) {
    const double value = x == 517 ? 99.0 : std::sin(static_cast<double>(x));
    sum += value;
    series.add(x, value);
  }
  EXPECT_LE(series.points().size(), 8);
  EXPECT_GT(series.points().size(), 4);
  EXPECT_EQ(series.width(), 128);
  double total = 0.0, highest = 0.0;
  std::uint64_t count = 0;
  for (const SeriesPoint& point : series.points()) {
    total += point.mean * static_cast<double>(point.count);
    count += point.count;
    highest = std::max(highest, point.high);
    EXPECT_LE(point.low, point.mean);
  }
  EXPECT_EQ(count, kNumbers);
  EXPECT_EQ(series.taken(), kNumbers);
  EXPECT_NEAR(total, sum, 1e-9);
  EXPECT_EQ(highest, 99.0);
  EXPECT_EQ(series.points().back().x, kNumbers - 1);
}

TEST(Series, AllPointsButTheLastAreFull) {
  Series series(6);
  for (std::uint64_t x = 0; x < 12345; ++x) {
    series.add(x, 1.0);
    for (std::size_t i = 0; i + 1 < series.points().size(); ++i) {
      ASSERT_EQ(series.points()[i].count, series.width()) << x;
    }
  }
}

TEST(Series, WhatGoesBackOrIsNoNumberIsLeftOut) {
  Series series(4);
  series.add(5, 1.0);
  series.add(4, 2.0);
  series.add(6, std::numeric_limits<double>::quiet_NaN());
  series.add(6, std::numeric_limits<double>::infinity());
  ASSERT_EQ(series.points().size(), 1);
  series.add(5, 3.0);
  EXPECT_EQ(series.points().size(), 2);
  EXPECT_EQ(series.last(), 3.0);
}

}  // namespace
}  // namespace troupe::telemetry
