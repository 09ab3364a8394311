#include "telemetry/sinks/tensorboard_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace troupe::telemetry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Histogram, CountsStayAndTheSumsAreOfTheMiddles) {
  const Histogram found = histogram_of(0, 4, std::vector<double>{1, 0, 0, 2});
  EXPECT_THAT(found.edges, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(found.counts, ElementsAre(1, 0, 0, 2));
  EXPECT_EQ(found.low, 0);
  EXPECT_EQ(found.high, 4);
  EXPECT_EQ(found.count, 3);
  EXPECT_EQ(found.sum, 0.5 + 2 * 3.5);
  EXPECT_EQ(found.sum_squares, 0.25 + 2 * 12.25);
}

TEST(Histogram, RangeThatIsNoneHasNoBuckets) {
  for (const auto& [low, high] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {kNan, 1.0}, {0.0, kInfinity}}) {
    const Histogram empty = histogram_of(low, high, std::vector<double>{1});
    EXPECT_EQ(empty.count, 0);
    EXPECT_THAT(empty.edges, IsEmpty());
    EXPECT_THAT(empty.counts, IsEmpty());
  }
}

TEST(Histogram, WidestRangeHasFiniteEdgesThatRise) {
  const double most = std::numeric_limits<double>::max();
  const Histogram found = histogram_of(-most, most, std::vector<double>(30, 1.0));
  for (std::size_t i = 1; i < found.edges.size(); ++i) {
    EXPECT_LT(found.edges[i - 1], found.edges[i]);
  }
}

}  // namespace
}  // namespace troupe::telemetry
