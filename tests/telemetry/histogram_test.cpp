#include "telemetry/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace troupe::telemetry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Histogram, GreatestNumberIsInTheLastBucket) {
  const Histogram found = histogram_of(std::vector<double>{4, 0, 1, 2, 3}, 4);
  EXPECT_THAT(found.edges, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(found.counts, ElementsAre(1, 1, 1, 2));
  EXPECT_EQ(found.low, 0);
  EXPECT_EQ(found.high, 4);
  EXPECT_EQ(found.count, 5);
  EXPECT_EQ(found.sum, 10);
  EXPECT_EQ(found.sum_squares, 30);
}

TEST(Histogram, NumbersThatAreNoneAreLeftOut) {
  const Histogram found = histogram_of(std::vector<double>{kNan, 1, kInfinity, 2, -kInfinity}, 1);
  EXPECT_THAT(found.edges, ElementsAre(1, 2));
  EXPECT_THAT(found.counts, ElementsAre(2));
  for (const auto& nothing : {std::vector<double>{}, {kNan}, {kInfinity, -kInfinity}}) {
    const Histogram empty = histogram_of(nothing);
    EXPECT_EQ(empty.count, 0);
    EXPECT_THAT(empty.edges, IsEmpty());
    EXPECT_THAT(empty.counts, IsEmpty());
  }
}

TEST(Histogram, NumbersThatAreAllTheSameHaveOneBucket) {
  const Histogram found = histogram_of(std::vector<double>{3, 3, 3});
  EXPECT_THAT(found.edges, ElementsAre(2.5, 3.5));
  EXPECT_THAT(found.counts, ElementsAre(3));
}

TEST(Histogram, WidestRangeHasFiniteEdgesThatRise) {
  const double most = std::numeric_limits<double>::max();
  const Histogram found = histogram_of(std::vector<double>{-most, 0, most});
  for (std::size_t i = 1; i < found.edges.size(); ++i)
    EXPECT_LT(found.edges[i - 1], found.edges[i]);
  EXPECT_EQ(std::accumulate(found.counts.begin(), found.counts.end(), 0.0), 3);
}

TEST(Histogram, WhatOthersCountedStaysAndTheSumsAreOfTheMiddles) {
  const Histogram found = histogram_of_counts(0, 4, std::vector<double>{1, 0, 0, 2});
  EXPECT_THAT(found.edges, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(found.counts, ElementsAre(1, 0, 0, 2));
  EXPECT_EQ(found.count, 3);
  EXPECT_EQ(found.sum, 0.5 + 2 * 3.5);
  EXPECT_EQ(found.sum_squares, 0.25 + 2 * 12.25);
  for (const auto& [low, high] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {kNan, 1.0}, {0.0, kInfinity}})
    EXPECT_THAT(histogram_of_counts(low, high, std::vector<double>{1}).counts, IsEmpty());
}

}  // namespace
}  // namespace troupe::telemetry
